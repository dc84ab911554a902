"""Traffic: how many messages a dispatch sends from each GPU to each other one, by transport.

Shapes: S source ranks (1 where all behave alike, else G), P slots, G GPUs, U units (NVLink domains or nodes), C experts at places, T traced tokens, K = top_k.
A message carries one token's vector once. Combine is the same messages backwards.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.problem import BYTES_PER_ELEMENT, Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TRACED_TOKENS = 2048  # tokens of a trace that the traffic is averaged over, evenly spaced


@dataclass(frozen=True, eq=False)
class Routing:
    """How the tokens of one layer reach slots: the load's shares, the replica rule's shares, the placement's row, and traced tokens if any."""

    share_E: Floats
    share_SP: Floats
    expert_P: Ints
    experts_TK: npt.NDArray[np.int32] | None = None


def assignments_SP(problem: Problem, routing: Routing) -> Floats:
    """Expected assignments per step that each source sends to each slot; S as in `share_SP`."""
    return (
        problem.workload.tokens_per_rank
        * problem.model.top_k
        * routing.share_E[routing.expert_P]
        * routing.share_SP
    )


def messages_GG(problem: Problem, routing: Routing, sent_SP: Floats | None = None) -> Floats:
    """Expected messages per step from source GPU (row) to destination GPU (column), the diagonal included. `sent_SP`: its assignments, where known."""
    transport, gpus, tokens = problem.workload.transport, problem.gpus, problem.workload.tokens_per_rank
    if transport == "allgather":
        return _allgather(problem)
    if transport == "slot":
        sent_SP = assignments_SP(problem, routing) if sent_SP is None else sent_SP
        return np.broadcast_to(sent_SP.reshape(len(routing.share_SP), gpus, -1).sum(axis=2), (gpus, gpus))
    gpu_P = np.arange(problem.slots) // problem.slots_per_gpu
    hits_GG = np.broadcast_to(tokens * _hit_share(problem, routing, gpu_P), (gpus, gpus))
    if transport == "rank":
        return hits_GG
    unit_G = units(problem)
    hits_SU = tokens * _hit_share(problem, routing, unit_G[gpu_P])
    return _two_hops(hits_GG, np.broadcast_to(hits_SU, (gpus, hits_SU.shape[1])), unit_G)


def message_bytes(problem: Problem) -> tuple[float, float]:
    """Bytes of one dispatch and of one combine message. Sources: DeepEP's low-latency and normal kernels (headers, scales, top-k ids and weights)."""
    width, top_k = problem.model.dispatch_width, problem.model.top_k
    dispatch = width * BYTES_PER_ELEMENT[problem.workload.dispatch_dtype]
    combine = width * BYTES_PER_ELEMENT[problem.workload.combine_dtype]
    if problem.workload.transport == "slot":
        return dispatch + 16, combine
    if problem.workload.transport == "rank":
        return dispatch + 4 + 12 * top_k, combine + 4 + 4 * top_k
    if problem.workload.transport == "allgather":
        return dispatch, combine
    return _align16(dispatch + 8 + 8 * top_k), _align16(combine + 8 + 4 * top_k)


def units(problem: Problem) -> Ints:
    """unit_G: what transport `node` crosses with one message: an NVLink domain that spans nodes, else the node."""
    topology = problem.topology
    return topology.domain_G if topology.domain_count < topology.node_count else topology.node_G


def inclusion_E(share_E: Floats, top_k: int) -> Floats:
    """Chance that a token's top-k holds each expert, from its share of assignments: k · share, capped at 1, the rest scaled to sum to k."""
    chance_E = np.minimum(top_k * share_E, 1.0)
    for _ in range(32):
        free = chance_E < 1.0
        missing = top_k - chance_E.sum()
        if missing <= 1e-9 or not chance_E[free].sum():
            break
        chance_E[free] = np.minimum(chance_E[free] * (1 + missing / chance_E[free].sum()), 1.0)
    return chance_E


def _hit_share(problem: Problem, routing: Routing, place_P: Ints) -> Floats:
    """hit_SX: share of a source's tokens with at least one expert at place x (a GPU or a unit); exact over a trace, else from inclusion chances."""
    experts, expert_P = problem.model.experts, routing.expert_P
    run_S: Ints = np.cumsum(
        np.append(False, (routing.share_SP[1:] != routing.share_SP[:-1]).any(axis=1))
    )  # neighbours on a node are mostly alike
    share_SP = routing.share_SP[np.flatnonzero(np.diff(run_S, prepend=-1))]
    if routing.experts_TK is None:
        copies, order_P, starts_C = _sorted_cells(
            place_P * experts + expert_P
        )  # slots of one expert at one place: a token uses one of them
        chance_E = inclusion_E(routing.share_E, problem.model.top_k)
        chance_SC = np.add.reduceat((chance_E[expert_P] * share_SP)[:, order_P], starts_C, axis=1)
        return np.asarray(_hit_chance_SX(chance_SC, copies // experts, float(chance_E.sum()))[run_S])
    experts_TK = routing.experts_TK[:: max(len(routing.experts_TK) // TRACED_TOKENS, 1)]
    places = int(place_P.max()) + 1
    copies, order_P, starts_C = _sorted_cells(expert_P * places + place_P)
    share_SC = np.add.reduceat(share_SP[:, order_P], starts_C, axis=1)
    hit_SX: Floats = np.array(
        [
            _traced_hits_X(share_C[share_C > 0], copies[share_C > 0], experts_TK, (experts, places))
            for share_C in share_SC
        ]
    )
    return hit_SX[run_S]


def _sorted_cells(cell_P: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct cells in order, the slots in order of cell, and where each cell begins among them."""
    order_P = np.argsort(cell_P, kind="stable")
    cells_C, starts_C = np.unique(cell_P[order_P], return_index=True)
    return cells_C, order_P, starts_C


def _traced_hits_X(
    share_C: Floats, cell_C: Ints, experts_TK: npt.NDArray[np.int32], shape_EX: tuple[int, int]
) -> Floats:
    """Share of the tokens that hit each place, from the share of an expert's assignments that goes to each of its places; cells in order of expert."""
    experts, places = shape_EX
    tokens = len(experts_TK)
    expert_C, place_C, missed_C = cell_C // places, cell_C % places, 1 - share_C
    cells_E = np.bincount(expert_C, minlength=experts)
    first_E = np.cumsum(cells_E) - cells_E
    missed_TX = np.ones(tokens * places)
    first_TK = first_E[experts_TK]  # most experts have one place: it takes no list of lists
    np.multiply.at(
        missed_TX,
        (place_C[first_TK] + places * np.arange(tokens)[:, None]).ravel(),
        missed_C[first_TK].ravel(),
    )
    token_A, k_A = np.nonzero((cells_E > 1)[experts_TK])
    expert_A = experts_TK[token_A, k_A]
    others_A = cells_E[expert_A] - 1
    cell_B = np.arange(others_A.sum()) + np.repeat(
        first_E[expert_A] + 1 - (np.cumsum(others_A) - others_A), others_A
    )  # the other cells of these assignments
    np.multiply.at(missed_TX, np.repeat(token_A, others_A) * places + place_C[cell_B], missed_C[cell_B])
    return np.asarray(1 - missed_TX.reshape(tokens, places).mean(axis=0))


def _hit_chance_SX(chance_SC: Floats, place_C: Ints, top_k: float) -> Floats:
    """Chance of at least one hit at each place, from the chance of each expert there; `place_C` ascends and leaves no place out.

    Asked one after the other, the hottest first: where those of a place were missed, all picks of the token are left for the others, so their
    chances grow. Exact for top-1 and for equal shares; without that growth dispatch comes out several percent low.
    """
    order_SC = np.lexsort((-chance_SC, np.broadcast_to(place_C, chance_SC.shape)), axis=1)
    chance_SC = np.take_along_axis(chance_SC, order_SC, axis=1)
    starts_X = np.searchsorted(place_C, np.arange(place_C[-1] + 1))
    sums_SC = np.pad(np.cumsum(chance_SC, axis=1), ((0, 0), (1, 0)))
    left_SC = np.maximum(top_k - (sums_SC[:, :-1] - sums_SC[:, starts_X][:, place_C]), 1e-15)
    return np.asarray(
        1 - np.multiply.reduceat(1 - np.minimum(chance_SC * top_k / left_SC, 1), starts_X, axis=1)
    )


def _two_hops(hits_GG: Floats, hits_GU: Floats, unit_G: Ints) -> Floats:
    """First hop to the GPU of the same index in each other unit that is hit, second from there to each GPU hit."""
    gpus, size_U = len(unit_G), np.bincount(unit_G)
    if (size_U == size_U[0]).all() and (np.diff(unit_G) >= 0).all():
        return _two_hops_of_equal_units(hits_GG, hits_GU, len(size_U))
    index_G = np.empty(gpus, dtype=np.int64)
    members = [np.flatnonzero(unit_G == unit) for unit in range(len(size_U))]
    for member in members:
        index_G[member] = np.arange(len(member))
    sent_GG = np.zeros((gpus, gpus))
    for unit, member in enumerate(members):
        outside = np.flatnonzero(unit_G != unit)
        forwarder = member[index_G[outside] % len(member)]
        sent_GG[outside, forwarder] += hits_GU[outside, unit]
        np.add.at(sent_GG, (forwarder[:, None], member[None, :]), hits_GG[np.ix_(outside, member)])
        sent_GG[np.ix_(member, member)] += hits_GG[np.ix_(member, member)]
    return sent_GG


def _two_hops_of_equal_units(hits_GG: Floats, hits_GU: Floats, units: int) -> Floats:
    """The same in whole-array steps, with a GPU as (unit, index in it)."""
    gpus = len(hits_GG)
    size, unit_U, index_I = gpus // units, np.arange(units), np.arange(gpus // units)
    hits_UIUI = hits_GG.reshape(units, size, units, size).copy()
    own_UII = hits_UIUI[unit_U, :, unit_U].copy()
    hits_UIUI[unit_U, :, unit_U] = 0.0
    forwarded_UII = hits_UIUI.sum(axis=0).transpose(
        1, 0, 2
    )  # [unit, index of the forwarder, index of the receiver]
    over_UIU = hits_GU.reshape(units, size, units).copy()
    over_UIU[unit_U, :, unit_U] = 0.0
    sent_UIUI = np.zeros((units, size, units, size))
    sent_UIUI[:, index_I, :, index_I] = over_UIU.transpose(1, 0, 2)
    sent_UIUI[unit_U, :, unit_U] += own_UII + forwarded_UII
    return sent_UIUI.reshape(gpus, gpus)


def _allgather(problem: Problem) -> Floats:
    """Each GPU passes its own rank's tokens round a ring of same-index GPUs, then every unit spreads what arrived inside itself."""
    unit_G, tokens = units(problem), problem.workload.tokens_per_rank
    count = int(unit_G.max()) + 1
    sent_GG = np.where(unit_G[:, None] == unit_G[None, :], float(count * tokens), 0.0)
    np.fill_diagonal(sent_GG, 0.0)
    for unit in range(count if count > 1 else 0):
        here, there = np.flatnonzero(unit_G == unit), np.flatnonzero(unit_G == (unit + 1) % count)
        sent_GG[here, there[np.arange(len(here)) % len(there)]] += (count - 1) * tokens
    return sent_GG


def _align16(size: float) -> float:
    return float(-(-int(np.ceil(size)) // 16) * 16)
