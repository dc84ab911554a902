"""vLLM 0.33.0. It reads no map file: flags reserve the redundant slots, and vLLM's own balancer fills them.

The rules were read in its wheel; tests/engines holds every launch against its own argument resolution and
its own expert layers, on a CPU.
"""

from collections.abc import Mapping, Sequence

from planner.base import BadInput
from planner.engines.common import dynamo, script, usual, vllm_plugin, vllm_replay
from planner.engines.common.command import node_command
from planner.engines.common.elastic import Elastic
from planner.engines.common.interface import Emission
from planner.engines.common.layout import cyclic_placement, refuse_broken
from planner.engines.common.online import OnlineBalancer
from planner.engines.common.releases import Release, find_release
from planner.engines.common.sliced import Sliced
from planner.engines.common.verdict import MIXED, ROLES, Verdict, check_role
from planner.engines.common.vllm_replay import Replay
from planner.engines.vllm import redundant, rules
from planner.engines.vllm.backend import WHEEL, transport
from planner.engines.vllm.launch import STEP_INTERVAL, Launch, node_words
from planner.engines.vllm.models import BALANCED
from planner.engines.vllm.pair import TRANSFER, router_text
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation

__all__ = ["BALANCED", "ROLES", "router_text", "transport"]  # of modules of their own

NAME = "vllm"
KV_CONNECTOR = "nixlv2"  # of llm-d's proxy before a decode server
TITLE = "vLLM"
VERSION = "0.33.0"
# By the token's row: 1/n over many tokens, but one token a rank always takes the first replica.
REPLICA_RULE = "hashed"
SLICED = Sliced(
    words="--tensor-parallel-size GPUS",
    words_apart="--tensor-parallel-size SHARED --data-parallel-size GROUPS",
    fp8_block=32,
    source="its wheel of 0.33.0: fused_moe/config.py:1106, fused_moe/oracle/fp8.py:292, read",
)
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = False
RELEASES = (
    Release("0.33.0", "its wheel, read; launches and plugin run on a CPU: no release reads a map file"),
)
ONLINE = OnlineBalancer(
    interval_steps=3000,
    window_steps=1000,
    stalls=False,
    source="EPLBConfig of its wheel, read: step_interval, window_size, use_async",
)
ELASTIC = Elastic(
    replaces_source=(
        "its wheel of 0.33.0: v1/fault_tolerance/engine_core_sentinel.py retries with all ranks or none, "
        "read; vllm#46370, which goes on without the lost ones, is open"
    ),
    grows=True,
    shrinks=True,
    request='POST /scale_elastic_ep {"new_data_parallel_size": GPUS}',
    resizes_by=("--enable-elastic-ep", "--elastic-ep-max-dp-size GPUS", "--data-parallel-backend ray"),
    most_redundant=redundant.MOST_REDUNDANT,
    resizes_source=(
        "its wheel of 0.33.0: v1/engine/core_client.py:1921, v1/engine/utils.py:942-1062, "
        "config/parallel.py:974, read"
    ),
)
replica_rule = usual.one_rule(REPLICA_RULE)
dispatch_dtype = usual.block_fp8
default_placement = cyclic_placement
read_map = usual.no_map


def reads_map(model: ModelSpec) -> bool:
    del model
    return False


def plugin_serves(model: ModelSpec) -> bool:
    return not redundant.why_never_balanced(model)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del gpus
    return redundant.map_limits(model, slots)


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, _ = find_release(TITLE, RELEASES, version)
    found = tuple(finding for finding, _ in rules.findings(Launch(problem, release, role)))
    return Verdict(TITLE, version or release.version, role, found)


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The launch script: there is no file that vLLM 0.33.0 would load."""
    return _emit(placement, problem, model_path, version, role)


def emit_with_plugin(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The launch script, and the package that makes vLLM's balancer return the plan's map."""
    return _emit(placement, problem, model_path, version, role, plugin=True)


def emit_with_replay(
    placement: Placement,
    problem: Problem,
    model_path: str,
    replay: Replay,
    version: str | None = None,
    role: str = MIXED,
    *,
    plugin: bool = False,
) -> Emission:
    """As `emit`, or `emit_with_plugin`, and the package that routes tokens by a trace's rows."""
    return _emit(placement, problem, model_path, version, role, plugin=plugin, replay=replay)


def dynamo_words(words: Sequence[str]) -> list[str]:
    """The command as a worker of ai-dynamo."""
    return dynamo.worker(words, ["vllm", "serve"], ["python3", "-m", "dynamo.vllm", "--model"])


def _emit(
    placement: Placement,
    problem: Problem,
    model_path: str,
    version: str | None,
    role: str,
    *,
    plugin: bool = False,
    replay: Replay | None = None,
) -> Emission:
    """BadInput where it would not serve."""
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, judge(problem, version, role).violations)
    launch = Launch(problem, release, role, plugin, replay is not None)
    files, ignored = dict[str, str](), _ignored(launch)
    if not plugin:
        notes += (f"WARNING: {ignored}",)
    elif not launch.backend.eplb:
        raise BadInput(f"{ignored}; a plugin cannot change that: leave --plugin out")
    else:
        files, ignored = vllm_plugin.package(placement, problem.model), ""
        notes += vllm_plugin.notes(STEP_INTERVAL)
    if replay is not None:
        files |= vllm_replay.package(replay)
        notes += vllm_replay.notes(replay)
    return _emission(launch, model_path, version, notes, files, ignored)


def _emission(
    launch: Launch,
    model_path: str,
    version: str | None,
    notes: tuple[str, ...],
    files: Mapping[str, str],
    ignored: str,
) -> Emission:
    problem, topology = launch.problem, launch.problem.topology
    notes += tuple(f"{how}{finding.text}" for finding, how in rules.findings(launch) if how is not None)
    notes += () if launch.role == MIXED else (TRANSFER,)
    needs = ((launch.plugin, vllm_plugin.REQUIREMENT), (launch.replay, vllm_replay.REQUIREMENT))
    requires = tuple(requirement for needed, requirement in needs if needed)
    words = [node_words(launch, model_path, node) for node in range(topology.node_count)]
    commands = script.on_devices(topology, words)
    title = f"{TITLE} {version or launch.release.version}, {problem.model.name} on {problem.gpus} GPUs"
    text = script.per_node(title, notes, topology, commands, requires)
    started = tuple(node_command(words, requires=requires) for words in commands)
    return Emission({**files, "launch.sh": text}, text, notes, ignored, started)


def _ignored(launch: Launch) -> str:
    if not launch.backend.eplb:
        return (
            f"{WHEEL} does not read a map and {launch.backend.unbalanced}: it serves its default placement, "
            "one block of experts a GPU, not the plan's"
        )
    return (
        f"{WHEEL} does not read a map: the plan's placement is not used. "
        f"The flags alone reserve its {launch.problem.redundant} redundant slots; "
        "vLLM starts from its default placement and places experts by its own balancer "
        f"from about step {STEP_INTERVAL // 4} on"
    )
