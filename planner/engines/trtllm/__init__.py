"""TensorRT-LLM, PyTorch backend: it reads a map and an options file, and MPI starts its ranks.

Its wheel could not be had: the rules were read in source snapshots from 1.0rc to main (2026-09), and none was
run.
"""

from collections.abc import Sequence

import numpy as np

from planner.base import BadInput
from planner.engines.common import script
from planner.engines.common.command import NodeCommand, node_command
from planner.engines.common.interface import Emission
from planner.engines.common.layout import gpus_per_node, refuse_broken, rows_by_layer, same_rows, uneven_nodes
from planner.engines.common.releases import Release, find_release
from planner.engines.common.verdict import MIXED, Verdict, check_role, of_limits
from planner.engines.trtllm.load_balancer import MAP_NAME, held_layers, map_text, read_map
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation, check_slots
from planner.topology import Topology

__all__ = ["MAP_NAME", "held_layers", "map_text", "read_map"]  # of the map's own module

NAME = "trtllm"
TITLE = "TensorRT-LLM"
VERSION = "1.2.1"
REPLICA_RULE = "round-robin"  # over replicas, within blocks of 1024 entries
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = False
ROLES = (MIXED,)
OPTIONS_NAME = "extra_llm_api_options.yaml"
MOST_EXPERTS, MOST_SLOTS = 1024, 2**15  # the routing kernel's table, and its int16 slot ids

READS_MAP_SINCE_1_0 = frozenset(
    ("deepseek_v3", "kimi_k2", "llama4", "llama4_text", "mixtral", "qwen2_moe", "qwen3_moe")
)
READS_MAP_LATER = frozenset[str]().union(
    ("deepseek_v32", "deepseek_v4", "glm_moe_dsa", "gpt_oss", "kimi_k25", "nemotron_h"),
    ("qwen3_5_moe", "qwen3_5_moe_text"),
)
READS_MAP = READS_MAP_SINCE_1_0 | READS_MAP_LATER
_NEWER = "sources before and after it, read; not run: its own list of architectures is not known"
RELEASES = (
    Release("1.0", "sources, read; not run", READS_MAP_SINCE_1_0),
    Release("1.2.1", _NEWER, READS_MAP),
)


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """One message per GPU within an NVLink domain, DeepEP across domains.

    No all-to-all at all where the EP size is no more than top_k.
    """
    if model is not None and topology.gpu_count <= model.top_k:
        return "allgather"
    if topology.domain_count == 1:
        return "rank"
    return "slot" if phase == "decode" else "node"


def replica_rule(phase: str, topology: Topology) -> str:
    del phase, topology
    return REPLICA_RULE


def dispatch_dtype(model: ModelSpec) -> str:
    del model
    return "bf16"  # assumed: what each release quantises before dispatch was not found in the snapshots


def reads_map(model: ModelSpec) -> bool:
    return model.architecture in READS_MAP


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Slot j of rank r holds expert (r * E // G + j) % E: neighbouring ranks overlap.

    A GPU has no more than E slots, so none holds an expert twice.
    """
    slots_per_gpu = check_slots(model, gpus, redundant)
    first_G1 = (np.arange(gpus) * model.experts // gpus)[:, None]
    return same_rows(model, gpus, ((first_G1 + np.arange(slots_per_gpu)) % model.experts).ravel())


def limits(problem: Problem) -> list[Violation]:
    found = uneven_nodes(problem.topology, "TensorRT-LLM takes rank // gpus_per_node for the node")
    return found + map_limits(problem.model, problem.slots, problem.gpus)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    found = []
    if model.experts > MOST_EXPERTS:
        most = f"TensorRT-LLM's load balancer takes up to {MOST_EXPERTS} experts"
        found.append(Violation("experts", f"{most}; {model.name} has {model.experts}"))
    if slots > MOST_SLOTS:
        text = f"TensorRT-LLM counts slots in 16 bits: up to {MOST_SLOTS}, not {slots}"
        found.append(Violation("slots", text))
    if gpus == 1:
        found.append(Violation("gpus", "TensorRT-LLM's load balancer wants an EP size of more than 1"))
    return found


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = find_release(TITLE, RELEASES, version)
    return of_limits(TITLE, release.version, limits(problem), role)


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map, options file and launch script.

    Where TensorRT-LLM would ignore the map there is none, and the options name none.
    """
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    if model_path.startswith("."):
        relative = f"model path {model_path!r} is relative, and the launch runs in the plan's folder"
        raise BadInput(f"{relative}; give an absolute path or a hub name")
    if release.reads_map(problem.model):
        ignored = ""
        notes += tuple(_notes(problem, release))
        files = {MAP_NAME: map_text(rows_by_layer(placement), problem.model, problem.gpus)}
    else:
        ignored = _ignored(problem, release)
        notes += (
            f"WARNING: {ignored}; the options name no map, and the launch serves the default placement",
        )
        files = {}
    words = _words(problem, model_path)
    launch = _launch(problem, words, notes)
    files |= {OPTIONS_NAME: _options_text(problem, with_map=not ignored), "launch.sh": launch}
    return Emission(files, launch, notes, ignored, _commands(problem, words))


def _options_text(problem: Problem, *, with_map: bool) -> str:
    lines = [
        "enable_attention_dp: true",
        f"tensor_parallel_size: {problem.gpus}",
        f"moe_expert_parallel_size: {problem.gpus}",
        f"gpus_per_node: {gpus_per_node(problem.topology)[0]}",
        "moe_config:",
    ]
    balancer = ["  backend: WIDEEP", f"  load_balancer: ./{MAP_NAME}"]
    return "\n".join([*lines, *(balancer if with_map else []), ""])


def _words(problem: Problem, model_path: str) -> list[str]:
    """TensorRT-LLM is started by MPI, once for each GPU; on one node it starts its ranks itself."""
    gpus = str(problem.gpus)
    words = ["trtllm-serve", script.quote(model_path), "--tp_size", gpus, "--ep_size", gpus]
    words += ["--config", OPTIONS_NAME]
    return words if problem.topology.node_count == 1 else ["trtllm-llmapi-launch", *words]


def _commands(problem: Problem, words: Sequence[str]) -> tuple[NodeCommand, ...]:
    nodes = problem.topology.node_count
    return (node_command(words, per_gpu=nodes > 1),) * nodes


def _launch(problem: Problem, words: Sequence[str], notes: Sequence[str]) -> str:
    lines = script.head(f"{TITLE}, {problem.model.name} on {problem.gpus} GPUs", notes, in_plan_dir=True)
    lines.append('cd -- "$PLAN_DIR"  # the options file names the map relative to it')
    nodes = problem.topology.node_count
    if nodes > 1:
        srun = f"srun --mpi=pmix -N {nodes} -n {problem.gpus} ./launch.sh"
        start = f"start this script through MPI, once for each GPU in rank order: {srun}"
        lines.append(f': "${{PMIX_RANK:-${{OMPI_COMM_WORLD_RANK:?{start}}}}}"')
    return "\n".join([*lines, f"exec {script.command_line(words)}", ""])


def _ignored(problem: Problem, release: Release) -> str:
    return (
        f"TensorRT-LLM {release.version} ignores a map for {problem.model.architecture} in silence "
        "(it is not in its list of architectures)"
    )


def _notes(problem: Problem, release: Release) -> list[str]:
    model, read = problem.model, "TensorRT-LLM's rules were read in its sources and not run"
    notes = [f"{read}; this is written for {release.version}"]
    if model.architecture in READS_MAP_LATER:
        notes.append(
            f"WARNING: TensorRT-LLM 1.0 ignores a map for {model.architecture} in silence; "
            "later sources read it: check that yours does"
        )
    if problem.gpus <= model.top_k:
        notes.append(
            f"EP size {problem.gpus} is no more than top_k {model.top_k}: "
            "TensorRT-LLM turns its all-to-all off, traffic does not depend on the placement"
        )
    return notes
