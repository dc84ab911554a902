"""SGLang 0.5.23. It reads a map file, for the models that offer their layout.

The rules were read in its wheel; tests/engines holds map, launch and replica choice against the engine's own
code, on a CPU.
"""

from planner.engines.common import deepep, script, usual
from planner.engines.common.command import Endpoint, node_command
from planner.engines.common.elastic import Elastic
from planner.engines.common.interface import Emission
from planner.engines.common.layout import cyclic_placement, draft_rows_lost, refuse_broken, rows_by_layer
from planner.engines.common.online import OnlineBalancer
from planner.engines.common.releases import Release, find_release
from planner.engines.common.sliced import Sliced
from planner.engines.common.verdict import MIXED, ROLES, Verdict, check_role
from planner.engines.sglang import rules
from planner.engines.sglang.backend import backend_of
from planner.engines.sglang.dynamo import dynamo_words
from planner.engines.sglang.expert_location import MAP_NAME, held_layers, map_text, read_map
from planner.engines.sglang.launch import ATTN_DP, Launch, node_words
from planner.engines.sglang.models import READS_MAP, WITHOUT_REDUNDANCY
from planner.engines.sglang.pair import PORT, TRANSFER, router_text
from planner.engines.sglang.rules import GATHERED_RULE
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

# Of its modules, what an engine offers.
__all__ = ["MAP_NAME", "ROLES", "WITHOUT_REDUNDANCY"]
__all__ += ["dynamo_words", "held_layers", "map_text", "read_map", "router_text"]

NAME = "sglang"
TITLE = "SGLang"
VERSION = "0.5.23"
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
REPLICA_RULE = "nearest-static"
SLICED = Sliced(
    words="--tp-size GPUS",
    words_apart="--tp-size GPUS --attn-dp-size GROUPS",
    fp8_block=128,
    source="its wheel of 0.5.23: layers/quantization/fp8.py:1588, read",
)
KV_CONNECTOR = "sglang"  # of llm-d's proxy before a decode server
_OLDER = "its wheel, read: the same map and rules, without --attn-dp-size"
RELEASES = (
    Release("0.5.21", f"{_OLDER}; its list of models is taken from 0.5.23", READS_MAP),
    Release("0.5.23", "its wheel, read and run", READS_MAP, frozenset({ATTN_DP, GATHERED_RULE})),
)
ONLINE = OnlineBalancer(
    interval_steps=1000,
    window_steps=1000,
    stalls=True,
    source="its wheel, read: --eplb-rebalance-num-iterations, the recorder's buffer, all layers in one chunk",
)
ELASTIC = Elastic(
    replaces=True,
    replaces_by=("--elastic-ep-backend mooncake", "--moe-a2a-backend mooncake", "--enable-eplb"),
    replaces_source=(
        "its wheel of 0.5.23: elastic_ep/elastic_ep.py:567, eplb/eplb_manager.py:301, "
        "eplb/eplb_algorithms/elasticity_aware.py, read"
    ),
    grows=True,
    request='POST /scale_elastic_ep {"new_ep_size": GPUS}',
    resizes_by=("--elastic-ep-backend mooncake", "--max-ep-size GPUS", "--load-balance-method round_robin"),
    resizes_source=(
        "its wheel of 0.5.23: managers/scheduler.py:5959, arg_groups/parallel_hook.py:519-690, read; "
        "sglang#33111, which lets ranks go, is open"
    ),
)
dispatch_dtype = usual.block_fp8
default_placement = cyclic_placement


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """As the launch that is emitted moves tokens; without a model, where nothing but the machine decides."""
    if model is not None and not (reads_map(model) and backend_of(phase, topology, model).deep):
        return "allgather"
    return deepep.transport(phase, topology)


def replica_rule(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    if model is None or not reads_map(model):  # no map, no replicas to choose from
        return REPLICA_RULE if deepep.serves(phase, topology) else GATHERED_RULE
    return REPLICA_RULE if backend_of(phase, topology, model).deep else GATHERED_RULE


def reads_map(model: ModelSpec) -> bool:
    return model.architecture in READS_MAP


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del gpus
    return rules.map_limits(model, slots)


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, _ = find_release(TITLE, RELEASES, version)
    found = tuple(finding for finding, _ in rules.findings(Launch(problem, release, role)))
    return Verdict(TITLE, version or release.version, role, found)


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map and launch script.

    Where SGLang would not read the map, a launch without map and redundant experts.
    """
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, judge(problem, version, role).violations)
    launch = Launch(problem, release, role)
    if launch.reads_map:
        ignored = ""
        notes += tuple(_notes(placement, launch))
        files = {MAP_NAME: map_text(rows_by_layer(placement), problem.model, problem.gpus)}
    else:
        ignored = _ignored(problem, release)
        without = (
            "the launch holds neither map nor redundant experts, and the plan's balance does not apply to it"
        )
        notes += (f"WARNING: {ignored}; {without}",)
        files = {}
    notes += () if role == MIXED else (TRANSFER,)
    words = [node_words(launch, model_path, node) for node in range(problem.topology.node_count)]
    commands = script.on_devices(problem.topology, words)
    title = f"{TITLE} {version or release.version}, {problem.model.name} on {problem.gpus} GPUs"
    files["launch.sh"] = script.per_node(title, notes, problem.topology, commands)
    started = tuple(node_command(words, endpoint=Endpoint(port=PORT)) for words in commands)
    return Emission(files, files["launch.sh"], notes, ignored, started)


def _ignored(problem: Problem, release: Release) -> str:
    architecture = problem.model.architecture
    return (
        f"SGLang {release.version} does not read a map for {architecture}: "
        "it would serve its default placement, not the plan's"
    )


def _notes(placement: Placement, launch: Launch) -> list[str]:
    problem, release = launch.problem, launch.release
    old = f"releases without {ATTN_DP} want --dp-size {problem.gpus} --enable-dp-attention in its place"
    said = [f"{how}{finding.text}" for finding, how in rules.findings(launch) if how is not None]
    return [
        *([f"SGLang {VERSION}: {old}"] if release.version == VERSION else []),
        *draft_rows_lost(TITLE, placement, problem),
        *_bare_draft_notes(problem),
        *said,
    ]


def _bare_draft_notes(problem: Problem) -> list[str]:
    model, bare = problem.model, rules.bare_draft(problem.model)
    if not problem.redundant or not bare:
        return []
    held = f"rank r holds its experts from r * {model.experts // problem.gpus} on"
    return [f"WARNING: {bare}: with MTP on, {held}, and no replica"]
