"""Exposure: experts whose replicas all sit on one GPU, or on one node. A loss of that place takes them away.

Shapes: L layers, E experts, G GPUs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem.problem import Problem
from planner.problem.survival import held_places_LE


@dataclass(frozen=True)
class Alone:
    """An expert of one layer that one place alone holds. `share`: of the layer's assignments."""

    layer: int
    expert: int
    place: int  # GPU or node
    share: float


@dataclass(frozen=True)
class Exposure:
    """The most load first; ties by layer and expert. `one_node` is empty where there is one node only."""

    experts: int  # of all layers
    one_gpu: tuple[Alone, ...]
    one_node: tuple[Alone, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many experts one place alone holds, and the one with most load; none where there is none."""
        kinds = {"GPU": self.one_gpu, "node": self.one_node}
        return tuple(_sentence(noun, alone, self.experts) for noun, alone in kinds.items() if alone)


def exposure(problem: Problem, placement: Placement) -> Exposure:
    """What each loss of a single place would take away, on the problem's own load."""
    node_G = problem.node_G
    one_gpu = _alone(problem, placement, np.arange(problem.gpus))
    one_node = _alone(problem, placement, node_G) if problem.topology.node_count > 1 else ()
    return Exposure(problem.model.experts * len(placement.layer_ids), one_gpu, one_node)


def _alone(problem: Problem, placement: Placement, place_G: npt.NDArray[np.int64]) -> tuple[Alone, ...]:
    held_LE = held_places_LE(placement.expert_LP, place_G, problem.model.experts)
    found = []
    for row, expert in np.argwhere(held_LE == 1).tolist():
        slot = int((placement.expert_LP[row] == expert).argmax())
        place, share = int(place_G[slot // placement.slots_per_gpu]), float(problem.shares_LE[row, expert])
        found.append(Alone(placement.layer_ids[row], expert, place, share))
    return tuple(sorted(found, key=lambda one: (-one.share, one.layer, one.expert)))


def _sentence(noun: str, alone: tuple[Alone, ...], experts: int) -> str:
    most = alone[0]
    count = f"{len(alone):,} of {experts:,} experts have all replicas on one {noun}"
    return (
        f"{count}; most load: expert {most.expert} of layer {most.layer} on {noun} {most.place}, "
        f"{most.share:.1%} of its layer"
    )
