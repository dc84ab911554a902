"""Rows that engines make when they are given none, and what several of them refuse: broken placements, uneven nodes.

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
    """Nothing is written for a placement that breaks a hard rule, nor for a question past the engine's limits."""
    broken = violations(problem, placement) or list(limits)
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise BadInput(f"this placement cannot be emitted: {broken[0].text}{more}")


def same_rows(model: ModelSpec, gpus: int, expert_P: npt.NDArray[np.int64]) -> Placement:
    """One row for every placed layer. Infeasible where the slots do not divide over the GPUs."""
    check_slots(model, gpus, len(expert_P) - model.experts)
    return Placement(np.tile(expert_P, (len(model.placed_layer_ids), 1)), model.placed_layer_ids, gpus)


def cyclic_placement(model: ModelSpec, gpus: int, redundant: int) -> Placement:
    """Expert p % E in slot p: the default of SGLang and vLLM. Its copies lie E slots apart and S <= E, so no GPU holds an expert twice."""
    check_slots(model, gpus, redundant)
    return same_rows(model, gpus, np.arange(model.experts + redundant) % model.experts)


def gpus_per_node(topology: Topology) -> tuple[int, ...]:
    """GPUs of each node, in node order."""
    return tuple(np.bincount(topology.node_G, minlength=topology.node_count).tolist())


def uneven_nodes(topology: Topology, why: str) -> list[Violation]:
    """The limit of engines that start as many ranks on each node."""
    counts = gpus_per_node(topology)
    return (
        []
        if len(set(counts)) == 1
        else [Violation("nodes", f"the nodes hold {', '.join(map(str, counts))} GPUs; {why}")]
    )
