"""TensorRT-LLM, PyTorch backend. Its wheel could not be had: the rules were read in source snapshots from 1.0rc to main (2026-09), and none was run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.engines.common import script
from planner.engines.common.command import NodeCommand, node_command
from planner.engines.common.interface import Emission, MapFile
from planner.engines.common.layout import gpus_per_node, refuse_broken, same_rows, uneven_nodes
from planner.engines.common.releases import Release, find_release
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation, check_slots
from planner.topology import Topology

NAME = "trtllm"
TITLE = "TensorRT-LLM"
VERSION = "1.2.1"
REPLICA_RULE = "round-robin"  # over replicas, within blocks of 1024 entries
MAP_NAME = "moe_load_balancer.yaml"
OPTIONS_NAME = "extra_llm_api_options.yaml"
KEY = "initial_global_assignments"
MOST_EXPERTS, MOST_SLOTS = 1024, 2**15  # the routing kernel's table, and its int16 slot ids

READS_MAP_SINCE_1_0 = frozenset(
    {"deepseek_v3", "kimi_k2", "mixtral", "llama4", "llama4_text", "qwen2_moe", "qwen3_moe"}
)
READS_MAP_LATER = frozenset(
    {
        "deepseek_v32",
        "deepseek_v4",
        "glm_moe_dsa",
        "gpt_oss",
        "kimi_k25",
        "nemotron_h",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
    }
)
RELEASES = (
    Release("1.0", "sources, read; not run", READS_MAP_SINCE_1_0),
    Release(
        "1.2.1",
        "sources before and after it, read; not run: its own list of architectures is not known",
        READS_MAP_SINCE_1_0 | READS_MAP_LATER,
    ),
)


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """One message per GPU within an NVLink domain, DeepEP across domains; no all-to-all at all where the EP size is no more than top_k."""
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
    return model.architecture in READS_MAP_SINCE_1_0 | READS_MAP_LATER


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Slot j of rank r holds expert (r * E // G + j) % E: neighbouring ranks overlap. S <= E, so no GPU holds an expert twice."""
    slots_per_gpu = check_slots(model, gpus, redundant)
    first_G1 = (np.arange(gpus) * model.experts // gpus)[:, None]
    return same_rows(model, gpus, ((first_G1 + np.arange(slots_per_gpu)) % model.experts).ravel())


def limits(problem: Problem) -> list[Violation]:
    found = uneven_nodes(problem.topology, "TensorRT-LLM takes rank // gpus_per_node for the node")
    return found + map_limits(problem.model, problem.slots, problem.gpus)


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    found = []
    if model.experts > MOST_EXPERTS:
        found.append(
            Violation(
                "experts",
                f"TensorRT-LLM's load balancer takes up to {MOST_EXPERTS} experts; {model.name} has {model.experts}",
            )
        )
    if slots > MOST_SLOTS:
        found.append(
            Violation("slots", f"TensorRT-LLM counts slots in 16 bits: up to {MOST_SLOTS}, not {slots}")
        )
    if gpus == 1:
        found.append(Violation("gpus", "TensorRT-LLM's load balancer wants an EP size of more than 1"))
    return found


def emit(placement: Placement, problem: Problem, model_path: str, version: str | None = None) -> Emission:
    """Map, options file and launch script. Where TensorRT-LLM would ignore the map there is none, and the options name none."""
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, limits(problem))
    if model_path.startswith("."):
        raise BadInput(
            f"model path {model_path!r} is relative, and the launch runs in the plan's folder; give an absolute path or a hub name"
        )
    ignored = "" if release.reads_map(problem.model) else _ignored(problem, release)
    notes += (
        (f"WARNING: {ignored}; the options name no map, and the launch serves the default placement",)
        if ignored
        else ()
    )
    notes += () if ignored else tuple(_notes(problem, release))
    words = _words(problem, model_path)
    launch = _launch(problem, words, notes)
    rows = dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))
    expert_map = {} if ignored else {MAP_NAME: map_text(rows, problem.model, problem.gpus)}
    files = {**expert_map, OPTIONS_NAME: _options_text(problem, with_map=not ignored), "launch.sh": launch}
    return Emission(files, launch, notes, ignored, _commands(problem, words))


def map_text(rows: Mapping[int, Sequence[int]], model: ModelSpec, gpus: int) -> str:
    """Keys are absolute layer ids, draft layers included: a missing one is a KeyError when MTP is on."""
    del gpus
    slots = len(next(iter(rows.values())))
    lines = [f"num_slots: {slots}", "layer_updates_per_iter: 0", f"{KEY}:"]
    for layer in held_layers(model):
        assert len(rows[layer]) == slots
        lines.append(f"  {layer}: [{', '.join(map(str, rows[layer]))}]")
    return "\n".join([*lines, ""])


def held_layers(model: ModelSpec) -> tuple[int, ...]:
    return model.placed_layer_ids


def read_map(value: Any) -> MapFile | None:
    if not isinstance(value, dict) or not {"num_slots", KEY} & set(value):
        return None
    known = ("num_slots", KEY, "layer_updates_per_iter")
    problems = [
        f"unknown key {key!r}; TensorRT-LLM takes {', '.join(known)} and refuses any other"
        for key in value
        if key not in known
    ]
    slots, updates, assignments = (
        value.get("num_slots"),
        value.get("layer_updates_per_iter", 0),
        value.get(KEY),
    )
    if type(slots) is not int or slots < 1:
        problems.append(
            "num_slots is missing"
            if slots is None
            else f"num_slots is {slots!r}; expected a whole number of at least 1"
        )
        slots = None
    if type(updates) is not int or updates < 0:
        problems.append(
            f"layer_updates_per_iter is {updates!r}; expected a whole number, 0 for a placement that stays"
        )
    if not isinstance(assignments, dict) or not assignments:
        problems.append(
            f"{KEY} must map layer ids to rows; "
            + ("it is missing" if assignments is None else f"it is a {type(assignments).__name__}")
        )
        assignments = {}
    problems += [
        f"layer key {key!r} is not a whole number of at least 0"
        for key in assignments
        if type(key) is not int or key < 0
    ]
    rows = tuple((layer, row) for layer, row in assignments.items() if type(layer) is int and layer >= 0)
    return MapFile(
        "TensorRT-LLM load balancer",
        rows,
        "absolute",
        slots=slots,
        needs_draft_rows=True,
        problems=tuple(problems),
    )


def _options_text(problem: Problem, *, with_map: bool) -> str:
    lines = [
        "enable_attention_dp: true",
        f"tensor_parallel_size: {problem.gpus}",
        f"moe_expert_parallel_size: {problem.gpus}",
        f"gpus_per_node: {gpus_per_node(problem.topology)[0]}",
        "moe_config:",
        "  backend: WIDEEP",
        f"  load_balancer: ./{MAP_NAME}",
    ]
    return "\n".join([*(lines if with_map else lines[:-2]), ""])


def _words(problem: Problem, model_path: str) -> list[str]:
    """TensorRT-LLM is started by MPI, once for each GPU; on one node it starts its ranks itself."""
    words = [
        "trtllm-serve",
        script.quote(model_path),
        "--tp_size",
        str(problem.gpus),
        "--ep_size",
        str(problem.gpus),
        "--config",
        OPTIONS_NAME,
    ]
    return words if problem.topology.node_count == 1 else ["trtllm-llmapi-launch", *words]


def _commands(problem: Problem, words: Sequence[str]) -> tuple[NodeCommand, ...]:
    nodes = problem.topology.node_count
    return (node_command(words, per_gpu=nodes > 1),) * nodes


def _launch(problem: Problem, words: Sequence[str], notes: Sequence[str]) -> str:
    lines = script.head(f"{TITLE}, {problem.model.name} on {problem.gpus} GPUs", notes, in_plan_dir=True)
    lines.append('cd -- "$PLAN_DIR"  # the options file names the map relative to it')
    nodes = problem.topology.node_count
    if nodes > 1:
        start = f"start this script through MPI, once for each GPU in rank order: srun --mpi=pmix -N {nodes} -n {problem.gpus} ./launch.sh"
        lines.append(f': "${{PMIX_RANK:-${{OMPI_COMM_WORLD_RANK:?{start}}}}}"')
    return "\n".join([*lines, f"exec {script.command_line(words)}", ""])


def _ignored(problem: Problem, release: Release) -> str:
    return f"TensorRT-LLM {release.version} ignores a map for {problem.model.architecture} in silence (it is not in its list of architectures)"


def _notes(problem: Problem, release: Release) -> list[str]:
    model = problem.model
    notes = [
        f"TensorRT-LLM's rules were read in its sources and not run; this is written for {release.version}"
    ]
    if model.architecture in READS_MAP_LATER:
        notes.append(
            f"WARNING: TensorRT-LLM 1.0 ignores a map for {model.architecture} in silence; later sources read it: check that yours does"
        )
    if problem.gpus <= model.top_k:
        notes.append(
            f"EP size {problem.gpus} is no more than top_k {model.top_k}: TensorRT-LLM turns its all-to-all off, traffic does not depend on the placement"
        )
    return notes
