"""vLLM 0.33.0. It reads no map file: flags reserve the redundant slots, and vLLM's own balancer fills them.

The rules were read in its wheel; tests/engines holds the flags against its own parser.
"""

import json
from collections.abc import Mapping
from typing import Any

from planner.base import BadInput
from planner.engines.common import deepep, script, vllm_plugin
from planner.engines.common.command import node_command
from planner.engines.common.interface import Emission, MapFile
from planner.engines.common.layout import cyclic_placement, refuse_broken
from planner.engines.common.releases import Release, find_release
from planner.engines.common.verdict import MIXED, Verdict, check_role, of_limits
from planner.engines.common.vllm_serve import serve_words
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

NAME = "vllm"
TITLE = "vLLM"
VERSION = "0.33.0"
# By the token's row: 1/n over many tokens, but one token a rank always takes the first replica.
REPLICA_RULE = "hashed"
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = False
ROLES = (MIXED,)
MOST_REDUNDANT = 1023
GATHER = "allgather_reducescatter"  # vLLM's default all-to-all backend
# Forward steps between two of vLLM's own rearrangements; the first comes after a quarter of it.
STEP_INTERVAL = 3000
RELEASES = (Release("0.33.0", "its wheel, read; flags and plugin run on a CPU: no release reads a map file"),)

# model_type of the classes that are a MixtureOfExperts and count their MoE layers: for the others (kimi_k3,
# mimo_v2_flash) vLLM ignores its EPLB flags.
BALANCED = frozenset[str]().union(
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_k25"),
    ("glm4_moe", "glm4_moe_lite", "glm_moe_dsa"),
    ("qwen3_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_vl_moe", "qwen3_vl_moe_text"),
    ("gemma4", "gemma4_text", "llama4", "llama4_text"),
    ("ernie4_5_moe", "mixtral", "nemotron_h", "step3p5"),
)


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    del model
    return deepep.transport(phase, topology)


def replica_rule(phase: str, topology: Topology) -> str:
    del phase, topology
    return REPLICA_RULE


def dispatch_dtype(model: ModelSpec) -> str:
    return "fp8" if model.weight_dtype == "fp8" else "bf16"  # fp8 for block-quantised weights


def reads_map(model: ModelSpec) -> bool:
    del model
    return False


def plugin_serves(model: ModelSpec) -> bool:
    return model.architecture in BALANCED


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    return cyclic_placement(model, gpus, redundant)


def limits(problem: Problem) -> list[Violation]:
    return deepep.limits(problem, pads_hidden=True) + map_limits(problem.model, problem.slots, problem.gpus)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    del gpus
    found, redundant = [], slots - model.experts
    if redundant > MOST_REDUNDANT:
        text = f"vLLM takes up to {MOST_REDUNDANT} redundant experts, not {redundant}"
        found.append(Violation("redundant", text))
    if redundant and model.architecture not in BALANCED:
        none = f"vLLM {VERSION} has no expert balancer for {model.architecture}"
        text = f"{none}, and redundant experts only with it; use --redundant 0"
        found.append(Violation("redundant", text))
    return found


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = find_release(TITLE, RELEASES, version)
    return of_limits(TITLE, release.version, limits(problem), role)


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The launch script: there is no file that vLLM 0.33.0 would load."""
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    ignored = _ignored(problem)
    notes += (f"WARNING: {ignored}",)
    return _emission(problem, model_path, version or release.version, notes, ignored=ignored)


def emit_with_plugin(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """The launch script, and the package that makes vLLM's balancer return the plan's map."""
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    if not plugin_serves(problem.model):
        raise BadInput(f"{_ignored(problem)}; a plugin cannot change that: leave --plugin out")
    package = vllm_plugin.package(placement, problem.model)
    notes += vllm_plugin.notes(STEP_INTERVAL)
    return _emission(problem, model_path, version or release.version, notes, package=package)


def read_map(value: Any) -> MapFile | None:
    del value
    return None


def _emission(
    problem: Problem,
    model_path: str,
    version: str,
    notes: tuple[str, ...],
    *,
    package: Mapping[str, str] | None = None,
    ignored: str = "",
) -> Emission:
    topology = problem.topology
    notes += tuple(deepep.notes(topology, problem.workload.phase, f"--all2all-backend {GATHER}"))
    commands = [_command(problem, model_path, node) for node in range(topology.node_count)]
    title = f"{TITLE} {version}, {problem.model.name} on {problem.gpus} GPUs"
    launch = script.per_node(title, notes, topology, commands)
    files = {**(package or {}), "launch.sh": launch}
    return Emission(files, launch, notes, ignored, tuple(map(node_command, commands)))


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words."""
    phase = problem.workload.phase
    mode = "deepep_low_latency" if phase == "decode" else "deepep_high_throughput"
    backend = mode if deepep.serves(phase, problem.topology) else GATHER
    words = serve_words(problem, model_path, node)
    words += ["--enable-expert-parallel", "--all2all-backend", backend]
    if problem.model.architecture not in BALANCED:
        return words
    balancer = {
        "num_redundant_experts": problem.redundant,
        "step_interval": STEP_INTERVAL,
        "use_async": False,
    }
    return [
        *words,
        "--enable-eplb",
        "--eplb-config",
        script.quote(json.dumps(balancer, separators=(",", ":"))),
    ]


def _ignored(problem: Problem) -> str:
    if problem.model.architecture not in BALANCED:
        without = f"has no expert balancer for {problem.model.architecture}"
        return (
            f"vLLM {VERSION} does not read a map and {without}: it serves its default placement, "
            "one block of experts a GPU, not the plan's"
        )
    return (
        f"vLLM {VERSION} does not read a map: the plan's placement is not used. "
        f"The flags alone reserve its {problem.redundant} redundant slots; "
        "vLLM starts from its default placement and places experts by its own balancer "
        f"from about step {STEP_INTERVAL // 4} on"
    )
