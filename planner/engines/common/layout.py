"""Rows that engines make when they are given none, and what several refuse: broken placements, uneven nodes.

Shapes: L layers, P slots, G GPUs.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation, check_slots, violations
from planner.topology import Topology


def refuse_broken(placement: Placement, problem: Problem, limits: Sequence[Violation]) -> None:
    """Nothing is written for a placement that breaks a hard rule, nor for a question past the engine's
    limits.
    """
    broken = violations(problem, placement) or list(limits)
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise BadInput(f"this placement cannot be emitted: {broken[0].text}{more}")


def rows_by_layer(placement: Placement) -> dict[int, list[int]]:
    """The experts of each slot, by absolute layer id."""
    return dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))


def same_rows(model: ModelSpec, gpus: int, expert_P: npt.NDArray[np.int64]) -> Placement:
    """One row for every placed layer. Infeasible where the slots do not divide over the GPUs."""
    check_slots(model, gpus, len(expert_P) - model.experts)
    return Placement(np.tile(expert_P, (len(model.placed_layer_ids), 1)), model.placed_layer_ids, gpus)


def cyclic_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Expert p % E in slot p: the default of SGLang and vLLM.

    Copies of an expert lie E slots apart and a GPU has no more than E, so none holds an expert twice.
    """
    check_slots(model, gpus, redundant)
    return same_rows(model, gpus, np.arange(model.experts + redundant) % model.experts)


def draft_rows_lost(title: str, placement: Placement, problem: Problem) -> list[str]:
    """Warnings for an engine whose map has no row for draft layers, and which gives them the cyclic
    placement.
    """
    model = problem.model
    default = cyclic_placement(model, problem.gpus, problem.redundant)
    lost = [
        layer
        for row, layer in enumerate(placement.layer_ids)
        if layer in model.draft_layer_ids and (placement.expert_LP[row] != default.expert_LP[row]).any()
    ]
    why = f"{title}'s map has no row for it and serves it in its default placement, not in the plan's"
    return [f"WARNING: draft layer {layer}: {why}" for layer in lost]


def gpus_per_node(topology: Topology) -> tuple[int, ...]:
    """GPUs of each node, in node order."""
    return tuple(np.bincount(topology.node_G, minlength=topology.node_count).tolist())


def uneven_nodes(topology: Topology, why: str) -> list[Violation]:
    """The limit of engines that start as many ranks on each node."""
    counts = gpus_per_node(topology)
    if len(set(counts)) == 1:
        return []
    least, most = min(counts), max(counts)
    sizes = f"{least} GPUs of each node ({least * len(counts)}), or {most} of one"
    return [Violation("nodes", f"the nodes hold {', '.join(map(str, counts))} GPUs; {why}: take {sizes}")]
