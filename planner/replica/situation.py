"""What a replica rule may look at besides the placement, and the shapes of its answers.

Shapes: L placed layers, E experts, G GPUs (one source rank each), S sources (1 where all behave alike, else
G), P slots, T tokens of one rank, K = top_k.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.model import ModelSpec
from planner.placement import Placement

Ids = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]
Experts = npt.NDArray[np.integer]  # expert ids of any width


@dataclass(frozen=True, eq=False)
class Situation:
    """The step in which replicas are picked: small batches skew some rules, and one rule follows the load."""

    model: ModelSpec
    node_G: Ids
    tokens_per_rank: int = 128
    load_share_LE: Shares | None = None  # share of each placed layer's assignments; even where none is given

    def __post_init__(self) -> None:
        if self.tokens_per_rank < 1:
            raise ValueError(f"tokens per rank is {self.tokens_per_rank}; it must be at least 1")
        shape = len(self.model.placed_layer_ids), self.model.experts
        if self.load_share_LE is not None and self.load_share_LE.shape != shape:
            raise ValueError(
                f"load_share_LE has shape {self.load_share_LE.shape}; "
                "it needs a row for every placed layer and a column for every expert"
            )

    def share_E(self, layer: int) -> Shares:
        """Load shares of the layer in row `layer` of the placement."""
        if self.load_share_LE is None:
            return np.full(self.model.experts, 1 / self.model.experts)
        return np.asarray(self.load_share_LE[layer])


Rule = Callable[[Placement, Situation], Iterator[Shares]]
# slots_TK = choice(experts_TK, expert_P, rank, gpus): where the engine on that rank sends its batch
Choice = Callable[[Ids, Experts, int, int], Ids]


def first_slots(expert_P: Experts) -> Shares:
    """share_1P that sends everything to the first slot of each expert.

    SGLang's draft layers, which have no map, come to this.
    """
    share_1P = np.zeros((1, len(expert_P)))
    share_1P[0, np.unique(expert_P, return_index=True)[1]] = 1.0
    return share_1P


def replica_index_P(expert_P: Experts) -> Ids:
    """Position of each slot among those of its expert, in slot order.

    >>> replica_index_P(np.array([2, 0, 2, 1, 2])).tolist()
    [0, 0, 1, 0, 2]
    """
    order_P = np.argsort(expert_P, kind="stable")
    ordered_P = expert_P[order_P]
    index_P = np.empty(len(expert_P), dtype=np.int64)
    index_P[order_P] = np.arange(len(expert_P)) - np.searchsorted(ordered_P, ordered_P)
    return index_P


def slot_of_replica(expert_P: Experts, experts_TK: Ids, replica_TK: Ids) -> Ids:
    """slots_TK: the `replica`-th slot of each expert, in slot order."""
    order_P = np.argsort(expert_P, kind="stable")
    slots_TK: Ids = order_P[np.searchsorted(expert_P[order_P], experts_TK) + replica_TK]
    return slots_TK


def replicas_TK(expert_P: Experts, experts_TK: Ids) -> Ids:
    """How many slots hold each assignment's expert. ValueError where none does."""
    replicas_E = np.bincount(expert_P, minlength=int(experts_TK.max(initial=0)) + 1)
    found_TK: Ids = replicas_E[experts_TK]
    if (found_TK == 0).any():
        raise ValueError(f"expert {experts_TK[found_TK == 0][0]} has no slot")
    return found_TK
