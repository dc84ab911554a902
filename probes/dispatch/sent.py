"""What a plan's dispatch sends, counted exactly. NumPy only.

Tokens come from the load, slots from the replica rule, messages from the transport.

Shapes: S source GPUs (all G of them), T tokens a source, K = top_k, E experts, P slots, G GPUs, U units
(nodes or NVLink domains). GPU of slot p is p // slots_per_gpu.
"""

import numpy as np
import numpy.typing as npt

from planner.base import BadInput

Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def draw_tokens(shares_E: Floats, tokens: int, top_k: int, rng: np.random.Generator) -> Ids:
    """experts_TK: for each token `top_k` distinct experts, drawn one after the other with the given shares.

    An expert without load is drawn only where fewer than `top_k` experts have any; then the lowest ids are.

    >>> draw_tokens(np.array([0.0, 1.0, 0.0]), 2, 2, np.random.default_rng(0)).tolist()
    [[1, 0], [1, 0]]
    """
    if not 1 <= top_k <= len(shares_E) or not np.isfinite(shares_E).all() or (shares_E < 0).any():
        drawn = f"cannot draw {top_k} distinct experts from {len(shares_E)} shares"
        raise ValueError(f"{drawn}; shares must be finite and not negative")
    with np.errstate(divide="ignore"):  # log(0) = -inf sorts last, which is what we want
        # the k largest keys are a sequential draw without replacement (Gumbel top-k)
        keys_TE = np.log(shares_E) + rng.gumbel(size=(tokens, len(shares_E)))
    return np.argsort(-keys_TE, axis=1, kind="stable")[:, :top_k].astype(np.int64)


def draw_rows(trace_RK: npt.NDArray[np.integer], tokens: int, rng: np.random.Generator) -> Ids:
    """experts_TK: tokens of a recorded trace, each at most once where the trace is long enough.

    It keeps which experts are chosen together.
    """
    rows = len(trace_RK)
    return trace_RK[rng.choice(rows, size=tokens, replace=tokens > rows)].astype(np.int64)


def choose_slots(
    experts_TK: Ids, share_P: Floats, expert_P: npt.NDArray[np.integer], rng: np.random.Generator
) -> Ids:
    """slots_TK: for each assignment of one source a slot of its expert, drawn with that source's shares.

    A slot with share 0 is never chosen.
    """
    order_P = np.argsort(expert_P, kind="stable")
    experts = int(max(expert_P.max(), experts_TK.max())) + 1
    bounds_E = np.searchsorted(expert_P[order_P], np.arange(experts + 1))
    sums_P = np.concatenate([[0.0], np.cumsum(share_P[order_P])])
    last_E = np.full(experts, -1)
    np.maximum.at(last_E, expert_P[order_P], np.where(share_P[order_P] > 0, np.arange(len(expert_P)), -1))
    if (last_E[experts_TK] < 0).any():
        raise ValueError(f"expert {experts_TK[last_E[experts_TK] < 0][0]} has no slot that gets a share")
    low_TK, high_TK = sums_P[bounds_E[experts_TK]], sums_P[bounds_E[experts_TK + 1]]
    wanted_TK = low_TK + rng.random(experts_TK.shape) * (high_TK - low_TK)
    position_TK = np.searchsorted(sums_P[1:], wanted_TK, side="right")
    # the sums' rounding must not reach the next expert
    slots_TK: Ids = order_P[np.minimum(position_TK, last_E[experts_TK])]
    return slots_TK


def check_transport(transport: str) -> None:
    if transport not in TRANSPORT_HOPS:
        raise BadInput(f"transport {transport!r} is unknown; known are {', '.join(TRANSPORT_HOPS)}")


def hops(slots_STK: Ids, slots_per_gpu: int, unit_G: Ids, transport: str) -> tuple[Counts, ...]:
    """messages_GG of each hop of a dispatch, rows are senders.

    The diagonal counts local copies: records that stay on their GPU.
    """
    check_transport(transport)
    return TRANSPORT_HOPS[transport](slots_STK // slots_per_gpu, unit_G)


def messages(slots_STK: Ids, gpus: int, slots_per_gpu: int, unit_G: Ids, transport: str) -> Counts:
    """messages_GG, summed over the transport's hops.

    Every record of a transport has one size, and combine is the transpose.
    """
    if len(unit_G) != gpus or len(slots_STK) != gpus:
        raise ValueError(f"{len(slots_STK)} sources and {len(unit_G)} unit ids for {gpus} GPUs")
    messages_GG: Counts = np.sum(hops(slots_STK, slots_per_gpu, unit_G, transport), axis=0, dtype=np.int64)
    return messages_GG


def assignments(
    slots_STK: Ids, expert_P: npt.NDArray[np.integer], gpus: int, slots_per_gpu: int, experts: int
) -> Counts:
    """assignments_SGE: how many assignments each source gives each GPU for each expert."""
    sources = len(slots_STK)
    source_STK = np.broadcast_to(np.arange(sources)[:, None, None], slots_STK.shape)
    flat_STK = (source_STK * gpus + slots_STK // slots_per_gpu) * experts + expert_P[slots_STK]
    return np.bincount(flat_STK.ravel(), minlength=sources * gpus * experts).reshape(sources, gpus, experts)


def same_index_GU(unit_G: Ids, transport: str = "node") -> Ids:
    """The GPU of each unit that has the same position there as GPU g has in its own.

    BadInput where units differ in size.
    """
    sizes_U = np.bincount(unit_G)
    if len(set(sizes_U.tolist())) > 1:
        odd = int(np.flatnonzero(sizes_U != sizes_U[0])[0])
        sizes = f"node 0 has {sizes_U[0]} GPUs, node {odd} has {sizes_U[odd]}"
        pairs = f"the '{transport}' transport pairs GPUs by their position on a node"
        raise BadInput(f"{pairs}; {sizes}; use 'rank' or 'slot'")
    members_UI = np.argsort(unit_G, kind="stable").reshape(len(sizes_U), -1)
    index_G = np.empty(len(unit_G), dtype=np.int64)
    index_G[members_UI.ravel()] = np.tile(np.arange(members_UI.shape[1]), len(sizes_U))
    return members_UI.T[index_G]


def _slot(gpu_STK: Ids, unit_G: Ids) -> tuple[Counts, ...]:
    gpus = len(unit_G)
    pair_STK = np.arange(gpus)[:, None, None] * gpus + gpu_STK
    return (np.bincount(pair_STK.ravel(), minlength=gpus * gpus).reshape(gpus, gpus),)


def _rank(gpu_STK: Ids, unit_G: Ids) -> tuple[Counts, ...]:
    return (_distinct(gpu_STK, len(unit_G)),)


def _node(gpu_STK: Ids, unit_G: Ids) -> tuple[Counts, ...]:
    gpus = len(unit_G)
    forwarder_GU = same_index_GU(unit_G)
    first_GG, second_GG = np.zeros((2, gpus, gpus), dtype=np.int64)
    tokens_SU = _distinct(unit_G[gpu_STK], forwarder_GU.shape[1])
    np.add.at(first_GG, (np.arange(gpus)[:, None], forwarder_GU), tokens_SU)
    np.add.at(second_GG, (forwarder_GU[:, unit_G], np.arange(gpus)[None, :]), _distinct(gpu_STK, gpus))
    return first_GG, second_GG


def _allgather(gpu_STK: Ids, unit_G: Ids) -> tuple[Counts, ...]:
    """A ring of GPUs at the same position of each unit, and every unit spreads in itself what came."""
    tokens, forwarder_GU = gpu_STK.shape[1], same_index_GU(unit_G)
    units, gpus = forwarder_GU.shape[1], np.arange(len(unit_G))
    ring_GG = np.zeros((len(gpus), len(gpus)), dtype=np.int64)
    if units > 1:
        ring_GG[gpus, forwarder_GU[gpus, (unit_G + 1) % units]] = (units - 1) * tokens
    return ring_GG, np.where(unit_G[:, None] == unit_G, units * tokens, 0).astype(np.int64)


def _distinct(place_STK: Ids, places: int) -> Counts:
    """tokens_SX: how many tokens of each source touch each of `places` at least once."""
    hit_STX = np.zeros((*place_STK.shape[:2], places), dtype=bool)
    np.put_along_axis(hit_STX, place_STK, values=True, axis=2)
    tokens_SX: Counts = hit_STX.sum(axis=1, dtype=np.int64)
    return tokens_SX


TRANSPORT_HOPS = {"slot": _slot, "rank": _rank, "node": _node, "allgather": _allgather}
