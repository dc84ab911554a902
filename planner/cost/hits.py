"""Which places a token's experts are at: the share of tokens that hit each GPU or unit.

Exact over a trace, else from the chances that a token's top-k holds an expert.

Shapes: S source ranks (1 where all behave alike, else G), P slots, E experts, X places (GPUs or units), C
experts at places, T traced tokens, K = top_k, A assignments of experts with several places, B their other
cells.
"""

import numpy as np
import numpy.typing as npt

from planner.cost.routing import Floats, Ints, Routing, inclusion_E
from planner.problem import Problem

TRACED_TOKENS = 2048  # tokens of a trace that the traffic is averaged over, evenly spaced


def hit_share_SX(problem: Problem, routing: Routing, place_P: Ints) -> Floats:
    """Share of a source's tokens with at least one expert at each place."""
    change_S = np.append(False, (routing.share_SP[1:] != routing.share_SP[:-1]).any(axis=1))
    run_S: Ints = np.cumsum(change_S)  # neighbours on a node are mostly alike
    share_SP = routing.share_SP[np.flatnonzero(np.diff(run_S, prepend=-1))]
    hits = _expected_hits_SX if routing.experts_TK is None else _traced_hits_SX
    return hits(problem, routing, share_SP, place_P)[run_S]


def _expected_hits_SX(problem: Problem, routing: Routing, share_SP: Floats, place_P: Ints) -> Floats:
    experts, expert_P = problem.model.experts, routing.expert_P
    # slots of one expert at one place are one cell: a token uses one of them
    cells_C, order_P, starts_C = _sorted_cells(place_P * experts + expert_P)
    chance_E = inclusion_E(routing.share_E, problem.model.top_k)
    chance_SC = np.add.reduceat((chance_E[expert_P] * share_SP)[:, order_P], starts_C, axis=1)
    return _hit_chance_SX(chance_SC, cells_C // experts, float(chance_E.sum()))


def _traced_hits_SX(problem: Problem, routing: Routing, share_SP: Floats, place_P: Ints) -> Floats:
    assert routing.experts_TK is not None
    experts_TK = routing.experts_TK[:: max(len(routing.experts_TK) // TRACED_TOKENS, 1)]
    shape_EX = (problem.model.experts, int(place_P.max()) + 1)
    cells_C, order_P, starts_C = _sorted_cells(routing.expert_P * shape_EX[1] + place_P)
    share_SC = np.add.reduceat(share_SP[:, order_P], starts_C, axis=1)
    return np.array(
        [
            _traced_hits_X(share_C[share_C > 0], cells_C[share_C > 0], experts_TK, shape_EX)
            for share_C in share_SC
        ]
    )


def _sorted_cells(cell_P: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct cells in order, the slots in order of cell, and where each cell begins among them."""
    order_P = np.argsort(cell_P, kind="stable")
    cells_C, starts_C = np.unique(cell_P[order_P], return_index=True)
    return cells_C, order_P, starts_C


def _traced_hits_X(
    share_C: Floats, cell_C: Ints, experts_TK: npt.NDArray[np.int32], shape_EX: tuple[int, int]
) -> Floats:
    """Share of the tokens that hit each place; `share_C`: of an expert's assignments, to each of its places.

    Cells are in order of expert.
    """
    experts, places = shape_EX
    tokens = len(experts_TK)
    expert_C, place_C, missed_C = cell_C // places, cell_C % places, 1 - share_C
    cells_E = np.bincount(expert_C, minlength=experts)
    first_E = np.cumsum(cells_E) - cells_E
    missed_TX = np.ones(tokens * places)
    first_TK = first_E[experts_TK]  # most experts have one place: it takes no list of lists
    hit_TK = place_C[first_TK] + places * np.arange(tokens)[:, None]
    np.multiply.at(missed_TX, hit_TK.ravel(), missed_C[first_TK].ravel())
    token_A, k_A = np.nonzero((cells_E > 1)[experts_TK])
    expert_A = experts_TK[token_A, k_A]
    others_A = cells_E[expert_A] - 1
    start_A = first_E[expert_A] + 1 - (np.cumsum(others_A) - others_A)
    cell_B = np.arange(others_A.sum()) + np.repeat(start_A, others_A)
    np.multiply.at(missed_TX, np.repeat(token_A, others_A) * places + place_C[cell_B], missed_C[cell_B])
    return np.asarray(1 - missed_TX.reshape(tokens, places).mean(axis=0))


def _hit_chance_SX(chance_SC: Floats, place_C: Ints, top_k: float) -> Floats:
    """Chance of at least one hit at each place, from the chance of each expert there.

    `place_C` ascends and leaves no place out. Asked one after the other, the hottest first: where those of a
    place were missed, all picks of the token are left for the others, so their chances grow. Exact for top-1
    and for equal shares; without that growth dispatch comes out several percent low.
    """
    order_SC = np.lexsort((-chance_SC, np.broadcast_to(place_C, chance_SC.shape)), axis=1)
    chance_SC = np.take_along_axis(chance_SC, order_SC, axis=1)
    starts_X = np.searchsorted(place_C, np.arange(place_C[-1] + 1))
    sums_SC = np.pad(np.cumsum(chance_SC, axis=1), ((0, 0), (1, 0)))
    left_SC = np.maximum(top_k - (sums_SC[:, :-1] - sums_SC[:, starts_X][:, place_C]), 1e-15)
    missed_SC = 1 - np.minimum(chance_SC * top_k / left_SC, 1)
    return np.asarray(1 - np.multiply.reduceat(missed_SC, starts_X, axis=1))
