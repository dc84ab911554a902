"""FastDeploy 2.x. It reads no map: counts are handed to its balancer while it serves, over HTTP.

Its balancer, a copy of DeepSeek's EPLB, and the part of its manager that asks for counts were run from its
sources on a CPU; its flags and routes were read, and it was never served.
"""

import json
from collections.abc import Iterator

from planner.base import dump_json
from planner.engines.common import count_table, fastdeploy_relay, script, small, usual
from planner.engines.common.command import Endpoint
from planner.engines.common.interface import Emission
from planner.engines.common.layout import cyclic_placement, gpus_per_node, refuse_broken, uneven_nodes
from planner.engines.common.releases import Release
from planner.engines.common.verdict import MIXED, Finding, Verdict
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation

NAME = "fastdeploy"
TITLE = "FastDeploy"
VERSION = "2.3"
REPLICA_RULE = "even"  # a draw for each assignment, among all replicas, whatever the rank
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
ROLES = small.ROLES
TABLE_NAME = "expert_stats.json"
PUSH_NAME = "rearrange.py"
RANKS_A_NODE = 8  # fixed in its manager
FIRST_PORT, ADDRESS_BYTES = 8180, 32
BALANCED = frozenset({"ernie4_5_moe", "glm4_moe"})  # model_type of the classes that route through its tables
RELEASES = (Release(VERSION, "sources at 09aeac7, read; its balancer run on a CPU", BALANCED),)
ENDPOINT = Endpoint(port_flag="--ports", port=FIRST_PORT)
_SOURCES = "sources at 09aeac7"
transport = usual.deepep_transport
replica_rule = usual.one_rule(REPLICA_RULE)
dispatch_dtype = usual.block_fp8
default_placement = cyclic_placement  # what its balancer makes of equal counts at start
read_map = usual.no_map


def reads_map(model: ModelSpec) -> bool:
    """Whether the model routes through the balancer's tables."""
    return model.architecture in BALANCED


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    groups = _groups(gpus)
    if groups > 1 and (model.experts % groups or gpus % groups):
        uneven = f"and {model.experts} do not divide over them"
        return [Violation("experts", f"FastDeploy deals experts to {groups} groups of ranks, {uneven}")]
    if slots == gpus:
        return [Violation("slots", "FastDeploy's balancer has nothing to deal where a GPU has one slot")]
    return []


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = small.asked(TITLE, RELEASES, problem, version, role)
    return small.verdict(TITLE, version or release.version, problem, _findings(problem))


def served(placement: Placement, problem: Problem) -> Placement:
    """The placement that FastDeploy makes of what is emitted."""
    return count_table.count_table(placement, problem, _groups(problem.gpus)).served


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The table, the program that hands it over, and the launch script."""
    release, notes = small.asked(TITLE, RELEASES, problem, version, role)
    verdict, files = judge(problem, version, role), {}
    refuse_broken(placement, problem, verdict.violations)
    ignored = _ignored(problem.model)
    if ignored:
        notes += (f"WARNING: {ignored}; the launch has no redundant experts",)
    else:
        table = count_table.count_table(placement, problem, _groups(problem.gpus))
        rows = dump_json(table.decoder_rows(problem.model.layers))
        files = {TABLE_NAME: rows, PUSH_NAME: fastdeploy_relay.PROGRAM}
        notes += (count_table.note(TITLE, table, placement, problem, REPLICA_RULE),)
        notes += small.said(verdict, ("hand-over", "later"))
    notes += small.said(verdict, ("role", *small.DEEPEP))
    commands = [_command(problem, model_path)] * problem.topology.node_count
    title = f"{TITLE} {version or release.version}"
    return small.emission(title, problem, commands, files, notes, ignored, endpoint=ENDPOINT)


def _groups(gpus: int) -> int:
    """Groups of eight ranks, to which its balancer deals experts first; replicas stay inside one."""
    return max(gpus // RANKS_A_NODE, 1)


def _ignored(model: ModelSpec) -> str:
    if reads_map(model):
        return ""
    no = f"FastDeploy {VERSION} has no expert balancer for {model.architecture}"
    return f"{no}: it would serve one block of experts a GPU, not the plan's"


def _findings(problem: Problem) -> Iterator[Finding]:
    uneven = uneven_nodes(problem.topology, "FastDeploy starts as many ranks on each node")
    yield from small.refused(uneven, f"{_SOURCES}, multi_api_server.py, read")
    limits_of_map = map_limits(problem.model, problem.slots, problem.gpus)
    yield from small.refused(limits_of_map, "sources at 66549b3, eplb/eplb.py, run")
    yield from small.deepep_only(TITLE, problem, problem.workload.phase, pads_hidden=True)
    text = "FastDeploy listens on all interfaces by default; the launch says so"
    yield Finding("host", text, "entrypoints/openai/utils.py, --host, at 00dc2b0, read", ENDPOINT.listen)
    ignored = _ignored(problem.model)
    if ignored:
        yield Finding("map", ignored, f"{_SOURCES}, its classes, read", ("--flags-only",))
    else:
        text = "FastDeploy reads no map: its balancer makes one of the plan's counts, handed to it over HTTP"
        yield Finding("map", text, "eplb/eplb.py at 66549b3, run", ("--enable-eplb", PUSH_NAME))
        run = f"Once all ranks answer, and after each restart, run `python3 {PUSH_NAME} HOST:PORT ..`"
        text = f"until the counts are handed over FastDeploy serves its cyclic placement. {run}"
        source = "eplb/experts_manager.py at 09aeac7, its loops run"
        yield Finding("hand-over", f"{text}, the addresses in rank order", source)
        text = "later sources (2026) collect counts inside the engine and were not seen to take any"
        yield Finding("later", text, "sources of 2026, read")
    yield small.other_phase(problem, "in sizes of FastDeploy's own, which were not read")


def _command(problem: Problem, model_path: str) -> list[str]:
    """A node's command, as bash words. The nodes' addresses, in order, are in $FD_NODE_IPS."""
    local = gpus_per_node(problem.topology)[0]
    ports = ",".join(str(FIRST_PORT + rank) for rank in range(local))
    words = ["env", "FD_ENABLE_MULTI_API_SERVER=1", "python3", "-m"]
    words += ["fastdeploy.entrypoints.openai.multi_api_server", "--ports", ports, "--num-servers", str(local)]
    words += ["--args", "--model", script.quote(model_path), *ENDPOINT.listen, "--tensor-parallel-size", "1"]
    words += ["--data-parallel-size", str(problem.gpus), "--enable-expert-parallel"]
    if problem.topology.node_count > 1:
        words += ["--ips", '"${FD_NODE_IPS:?the addresses of all nodes, in order, with commas}"']
    return [*words, *_balancer(problem)] if reads_map(problem.model) else words


def _balancer(problem: Problem) -> list[str]:
    """The balancer's flags. Who may hand it counts is asked for, not made up."""
    user, password = "${FD_EPLB_USER:?who may rearrange}", "${FD_EPLB_PASSWORD:?the password of that user}"
    config = {
        "redundant_experts_num": problem.redundant,
        "redundant_expert_ip_shm_size": max(1024, ADDRESS_BYTES * problem.gpus),
        "redundant_expert_enable_schedule_cordon": False,
        "redundant_expert_api_user": "@user",
        "redundant_expert_api_password": "@password",
    }
    text = json.dumps(config, separators=(",", ":"))
    text = text.replace("@user", f"'\"{user}\"'").replace("@password", f"'\"{password}\"'")
    return ["--enable-eplb", "--eplb-config", f"'{text}'"]
