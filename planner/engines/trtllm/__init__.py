"""TensorRT-LLM, PyTorch backend: it reads a map and an options file, and MPI starts its ranks.

Its wheel could not be had: the rules were read in copies of its sources from 1.0rc to main (2026-09), and
none was run. The launch is for the WIDEEP backend, which reads a map from 1.0 to 1.2.1.
"""

from collections.abc import Sequence

import numpy as np

from planner.base import BadInput
from planner.engines.common import script, usual
from planner.engines.common.command import NodeCommand, node_command
from planner.engines.common.interface import Emission
from planner.engines.common.layout import refuse_broken, rows_by_layer, same_rows
from planner.engines.common.online import OnlineBalancer
from planner.engines.common.releases import find_release
from planner.engines.common.sliced import Sliced
from planner.engines.common.verdict import DECODE, MIXED, PREFILL, Verdict, check_role
from planner.engines.trtllm import alltoall, rules
from planner.engines.trtllm.dynamo import dynamo_words
from planner.engines.trtllm.launch import OPTIONS_NAME, Launch, node_words, options_text
from planner.engines.trtllm.load_balancer import MAP_NAME, held_layers, map_text, read_map
from planner.engines.trtllm.pair import TRANSFER, router_text
from planner.engines.trtllm.releases import RELEASES, TITLE, why_no_map
from planner.engines.trtllm.rules import map_limits
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, check_slots
from planner.topology import Topology

__all__ = [  # of modules of their own
    "MAP_NAME",
    "RELEASES",
    "TITLE",
    "dynamo_words",
    "held_layers",
    "map_limits",
    "map_text",
    "read_map",
    "router_text",
]

NAME = "trtllm"
VERSION = "1.2.1"
REPLICA_RULE = "round-robin"  # over replicas, within blocks of 1024 entries
SLICED = Sliced(
    words="--tp_size GPUS",
    words_apart="--tp_size GPUS, enable_attention_dp: true",
    fp8_block=128,
    source="assumed: whole blocks of fp8 weights, as in other engines",
    only_all_or_one=True,
)
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = False
ROLES = (MIXED, PREFILL, DECODE)
ONLINE = OnlineBalancer(
    interval_steps=58,
    window_steps=58,
    stalls=False,
    source="its sources, read: layer_updates_per_iter layers at each iteration, 0 where nobody sets it; "
    "assumed: one, of 58 layers, and a look as far back",
)
replica_rule = usual.one_rule(REPLICA_RULE)


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """That of the all-to-all which the launch names, in the newest release; without a map it names none."""
    if model is not None and not reads_map(model):
        return alltoall.TRANSPORTS[alltoall.GATHER]
    return alltoall.TRANSPORTS[alltoall.method_of(phase, topology, model)[0]]


def dispatch_dtype(model: ModelSpec) -> str:
    """Read: WIDEEP quantises block-scaled weights' activations after dispatch."""
    del model
    return "bf16"


def reads_map(model: ModelSpec) -> bool:
    return not why_no_map(model, find_release(TITLE, RELEASES, VERSION)[0])[0]


def default_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Slot j of rank r holds expert (r * E // G + j) % E: neighbouring ranks overlap.

    A GPU has no more than E slots, so none holds an expert twice.
    """
    slots_per_gpu = check_slots(model, gpus, redundant)
    first_G1 = (np.arange(gpus) * model.experts // gpus)[:, None]
    return same_rows(model, gpus, ((first_G1 + np.arange(slots_per_gpu)) % model.experts).ravel())


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, _ = find_release(TITLE, RELEASES, version)
    found = tuple(finding for finding, _ in rules.findings(Launch(problem, release, role)))
    return Verdict(TITLE, version or release.version, role, found)


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map, options file and launch script.

    Where TensorRT-LLM would not serve the map there is none, and the options name none.
    """
    check_role(TITLE, role, ROLES, problem.workload.phase)
    release, notes = find_release(TITLE, RELEASES, version)
    refuse_broken(placement, problem, judge(problem, version, role).violations)
    if model_path.startswith("."):
        relative = f"model path {model_path!r} is relative, and the launch runs in the plan's folder"
        raise BadInput(f"{relative}; give an absolute path or a hub name")
    launch, files, ignored = Launch(problem, release, role), {}, ""
    if launch.with_map:
        files = {MAP_NAME: map_text(rows_by_layer(placement), problem.model, problem.gpus)}
    else:
        ignored = f"{TITLE} {release.version} {why_no_map(problem.model, release)[0]}"
        notes += (
            f"WARNING: {ignored}; the options name no map, and the launch serves the default placement",
        )
    notes += tuple(_notes(launch))
    words = node_words(launch, model_path)
    if problem.topology.node_count == 1:
        (words,) = script.on_devices(problem.topology, [words])
    text = _script(launch, words, notes)
    files |= {OPTIONS_NAME: options_text(launch), "launch.sh": text}
    return Emission(files, text, notes, ignored, _commands(problem, words))


def _commands(problem: Problem, words: Sequence[str]) -> tuple[NodeCommand, ...]:
    nodes = problem.topology.node_count
    return (node_command(words, per_gpu=nodes > 1),) * nodes


def _script(launch: Launch, words: Sequence[str], notes: Sequence[str]) -> str:
    problem = launch.problem
    lines = script.head(f"{TITLE}, {problem.model.name} on {problem.gpus} GPUs", notes, in_plan_dir=True)
    lines.append('cd -- "$PLAN_DIR"  # the options file names the map relative to it')
    nodes = problem.topology.node_count
    if nodes > 1:
        srun = f"srun --mpi=pmix -N {nodes} -n {problem.gpus} ./launch.sh"
        start = f"start this script through MPI, once for each GPU in rank order: {srun}"
        lines.append(f': "${{PMIX_RANK:-${{OMPI_COMM_WORLD_RANK:?{start}}}}}"')
    return "\n".join([*lines, f"exec {script.command_line(words)}", ""])


def _notes(launch: Launch) -> list[str]:
    read = "TensorRT-LLM's rules were read in its sources and not run"
    said = [f"{how}{finding.text}" for finding, how in rules.findings(launch) if how is not None]
    transfer = [] if launch.role == MIXED else [TRANSFER]
    return [f"{read}; this is written for {launch.release.version}", *said, *transfer]
