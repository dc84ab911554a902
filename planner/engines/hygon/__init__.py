"""HYGON's vLLM plugin (vllm-plugin-das, for vLLM 0.25.1 and 0.28.1): a map for each model it loads.

Its reader of the map and its order of replicas were run from its sources on a CPU; it was never served.
"""

import json
from collections.abc import Iterator

from planner.engines.common import deepep, script, small, usual
from planner.engines.common.command import Endpoint
from planner.engines.common.interface import Emission
from planner.engines.common.layout import cyclic_placement, refuse_broken, rows_by_layer, uneven_nodes
from planner.engines.common.releases import Release
from planner.engines.common.verdict import DECODE, MIXED, Finding, Verdict
from planner.engines.common.vllm_serve import serve_words
from planner.engines.hygon.offline_map import CLASSES, MAP_NAME, held_layers, map_text, read_map
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation

__all__ = ["MAP_NAME", "held_layers", "map_text", "read_map"]  # of a module of their own

NAME = "hygon"
TITLE = "vllm-plugin-das"
VERSION = "0.28.1"  # of the vLLM that it is for
# vLLM's hash of the token's row picks a column of a table that is turned for each rank, so that every column
# is shared evenly among ranks: 1 / n, apart from one token.
REPLICA_RULE = "even"
POLICY = "locality_fair"
ACCELERATOR = "hygon"
DRAFT_IS_OPTIONAL = False
ROLES = small.ROLES
MOST_REDUNDANT = 1023
RELEASES = (
    Release("0.25.1", "sources at 1114afb, read; reader and replica order run on a CPU", frozenset(CLASSES)),
    Release("0.28.1", "sources of 2026-10, read: the same, and more that it checks", frozenset(CLASSES)),
)
ENDPOINT = Endpoint()
_MODES = {DECODE: "deepep_low_latency"}
transport = usual.deepep_transport
replica_rule = usual.one_rule(REPLICA_RULE)
dispatch_dtype = usual.block_fp8
default_placement = cyclic_placement


def reads_map(model: ModelSpec) -> bool:
    return model.architecture in CLASSES


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    redundant = slots - model.experts
    if redundant > MOST_REDUNDANT:
        text = f"vLLM takes up to {MOST_REDUNDANT} redundant experts, not {redundant}"
        return [Violation("redundant", text)]
    return [Violation("gpus", "vLLM's expert balancer wants more than 1 GPU")] if gpus < 2 else []


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = small.asked(TITLE, RELEASES, problem, version, role)
    return small.verdict(TITLE, version or release.version, problem, _findings(problem))


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map and launch script."""
    release, notes = small.asked(TITLE, RELEASES, problem, version, role)
    verdict, files = judge(problem, version, role), {}
    refuse_broken(placement, problem, verdict.violations)
    ignored = _ignored(problem.model)
    if ignored:
        notes += (f"WARNING: {ignored}; the launch holds neither map nor redundant experts",)
    else:
        files[MAP_NAME] = map_text(rows_by_layer(placement), problem.model, problem.gpus)
        notes += small.said(verdict, ("keys", "scope"))
    notes += (f"{TITLE} serves HYGON DCUs: the plan's topology must describe them",)
    notes += small.said(verdict, ("role", *small.DEEPEP))
    commands = [_command(problem, model_path, node) for node in range(problem.topology.node_count)]
    title = f"{TITLE} for vLLM {version or release.version}"
    return small.emission(
        title, problem, commands, files, notes, ignored, endpoint=ENDPOINT, accelerator=ACCELERATOR
    )


def _ignored(model: ModelSpec) -> str:
    if reads_map(model):
        return ""
    return f"{TITLE} finds a map by vLLM's name of the class, unknown here for {model.architecture}"


def _findings(problem: Problem) -> Iterator[Finding]:
    model, sources = problem.model, "sources at 1114afb"
    uneven = uneven_nodes(problem.topology, "vllm-plugin-das divides ranks evenly over nodes")
    yield from small.refused(uneven, f"{sources}, eplb_dispatch.py, run")
    yield from small.refused(
        map_limits(model, problem.slots, problem.gpus), "vLLM's config/parallel.py, read"
    )
    broken = deepep.limits(problem, pads_hidden=True)
    yield from small.refused(broken, f"{deepep.UPSTREAM.name}, read; HYGON's own build was not")
    text = "vLLM listens on all interfaces by default; the launch says so"
    yield Finding("host", text, "vLLM 0.33.0's launchers/launcher.py, read", ENDPOINT.listen)
    text = "a step brings no more tokens to a rank than were planned"
    yield Finding("sizes", text, "vLLM 0.33.0's config/scheduler.py, run", tuple(_size_words(problem)))
    ignored = _ignored(model)
    if ignored:
        yield Finding("map", ignored, f"{sources}, static_eplb.py, run", ("--flags-only",))
    else:
        text = "the map is read at start, and no weights move while it serves"
        flags = ("--enable-eplb", f"--eplb-config expert_map_path={MAP_NAME}")
        yield Finding("map", text, f"{sources}, static_eplb.py, run", flags)
        keys = " and ".join(key for key in CLASSES[model.architecture] if key)
        text = f"the map's keys are {keys}: the classes that vLLM must load; it stops at any other"
        yield Finding("keys", text, f"{sources}, static_eplb.py, run", (keys,))
        text = (
            "for vLLM 0.28.1 it is meant for one node and HY4; more was read in its sources, not seen tried"
        )
        yield Finding("scope", text, "sources of 2026-10, read")
    yield small.other_phase(problem, "in steps of as many tokens")


def _size_words(problem: Problem) -> list[str]:
    """Of one rank: vLLM's limits are those of a data-parallel rank."""
    tokens = str(problem.workload.tokens_per_rank)
    requests = ["--max-num-seqs", tokens] if problem.workload.phase == DECODE else []
    return ["--max-num-batched-tokens", tokens, *requests]


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words: vLLM's own flags, and the map in its balancer's configuration."""
    phase = problem.workload.phase
    mode = _MODES.get(phase, "deepep_high_throughput")
    backend = mode if deepep.serves(phase, problem.topology) else "allgather_reducescatter"
    words = [*serve_words(problem, model_path, node), *(() if node else ENDPOINT.listen)]
    words += ["--enable-expert-parallel", "--all2all-backend", backend, *_size_words(problem)]
    if _ignored(problem.model):
        return words
    config = {
        "expert_map_path": "@",
        "static_dispatch_policy": POLICY,
        "num_redundant_experts": problem.redundant,
        "use_async": False,
    }
    before, after = json.dumps(config, separators=(",", ":")).split("@")
    return [*words, "--enable-eplb", "--eplb-config", f"'{before}'{script.PLAN_DIR}'/{MAP_NAME}{after}'"]
