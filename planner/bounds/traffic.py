"""Lower bounds on the bytes of dispatch and combine, as seconds per layer, that hold for every placement. Nothing here looks at a placement.

The slowest link is at least as slow as all links of its kind together: their bytes over the sum of their rates. Those bytes are a sum over messages,
each at the price of its route; an expert with c replicas pays no less than the best c GPUs would cost it, and the experts share the spare slots.
A second bound is what the links of the busiest GPU or unit carry, of experts that all sources find at the same places.

Shapes: L layers, E experts, G GPUs (as sources and destinations), R resources, C replica counts (column c - 1 is count c).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.bounds.picks import convex, least_convex_total, least_total, messages_E, messages_of_trace_XE
from planner.cost import Floats, PhaseConstants, Routing, efficiency_R, inclusion_E, messages_GG, units
from planner.load import LoadProfile
from planner.problem import Problem
from planner.replica import expected_shares

ALIKE = (
    "even",
    "row-index",
    "hashed",
    "lp",
)  # rules by which every source uses an expert's replicas in the same proportion
MOST_GPUS = 256  # beyond which the links of the busiest place are not looked at: it takes a traffic matrix for each place
MOST_ROUND, HOTTEST, MOST_ENTRIES = (
    16,
    64,
    8192,
)  # replicas, experts, entries of a rank; beyond, ranks are taken to find the nearest replica
BUSIEST = {"slot": "busiest GPU", "rank": "busiest GPU", "node": "busiest unit"}


@dataclass(frozen=True, eq=False)
class PhaseBound:
    """Per layer: seconds that bytes take at least, start-up not counted, and which argument says so."""

    seconds_L: Floats
    reason_L: tuple[str, ...]


class Least(NamedTuple):
    """What both phases go by: messages of each layer (`least_messages`), and that some GPU gets at least so many assignments over its speed."""

    weights: list[tuple[Floats, Floats]]
    peak_load_L: Floats
    speed_G: Floats


class Tariff(NamedTuple):
    """One kind of link: what an expert's messages cost with c replicas, in seconds per byte, when every source sends one message for it."""

    name: str
    to_gpu_C: Floats
    to_unit_C: Floats  # first hop of transport `node`


def phase_bound(
    problem: Problem,
    load: LoadProfile,
    least: "Least",
    constants: PhaseConstants,
    message_bytes: float,
    *,
    back: bool,
) -> PhaseBound:
    """The bound for dispatch, or for combine where `back`."""
    weights, peak_load_L, speed_G = least
    rate_R = problem.topology.capacity_R * efficiency_R(problem, constants)
    layers, transport = len(peak_load_L), problem.workload.transport
    if transport == "allgather":
        return _fixed_volume(problem, rate_R, message_bytes, layers, back=back)
    found = [("none", np.zeros(layers))]
    extra = problem.redundant
    priced = tariffs(problem, rate_R, back=back)
    for tariff in priced:
        totals = [
            least_convex_total([(to_gpu_E, tariff.to_gpu_C), (to_unit_E, tariff.to_unit_C)], extra)
            for to_gpu_E, to_unit_E in weights
        ]
        found.append(
            (f"all {tariff.name}", np.array(totals) * problem.workload.tokens_per_rank * message_bytes)
        )
    if (
        problem.replica_rule == "round-robin"
        and priced
        and transport == "slot"
        and problem.workload.tokens_per_rank * problem.model.top_k <= MOST_ENTRIES
    ):
        tariff = priced[
            int(np.argmax([seconds_L.sum() for _, seconds_L in found[1:]]))
        ]  # the others would hardly become the largest
        totals = [
            _by_rounds(problem, load.shares_LE[layer], tariff, weights[layer]) for layer in range(layers)
        ]
        found.append(
            (f"all {tariff.name}", np.array(totals) * problem.workload.tokens_per_rank * message_bytes)
        )
    if 1 < problem.gpus <= MOST_GPUS:
        messages_L = _to_busiest_place_L(problem, load, peak_load_L)
        found.append(
            (
                BUSIEST[transport],
                messages_L * message_bytes * _seconds_per_byte(problem, speed_G, rate_R, back=back),
            )
        )
    seconds_XL = np.array([seconds_L for _, seconds_L in found])
    best_L = seconds_XL.argmax(axis=0)
    return PhaseBound(seconds_XL.max(axis=0), tuple(found[best][0] for best in best_L.tolist()))


def tariffs(problem: Problem, rate_R: Floats, *, back: bool) -> list[Tariff]:
    """One for each set of links that messages may use."""
    found = []
    for name, indices in _kinds(problem).items():
        price_R = np.zeros(len(rate_R))
        price_R[indices] = 1 / rate_R[indices].sum()  # each link weighed by its rate
        price_GG = problem.topology.routes.pair_prices(price_R)
        to_gpu_GG, to_unit_GG = _hop_prices(problem, price_GG.T if back else price_GG)
        found.append(Tariff(name, _toll_C(problem, to_gpu_GG), _toll_C(problem, to_unit_GG)))
    return found


def _kinds(problem: Problem) -> dict[str, list[int]]:
    """Indices of the links of each kind and direction; and NVLink with NICs, for what leaves its GPU takes one of them where neither alone is needed."""
    kinds: dict[str, list[int]] = {}
    for index, resource in enumerate(problem.topology.resources):
        direction = resource.name.rpartition("/")[2]
        kinds.setdefault(
            f"{resource.tier} {direction}" if direction in ("in", "out", "up", "down") else resource.tier, []
        ).append(index)
    for direction in ("in", "out"):
        nvlink, nic = (
            kinds.get(f"nvlink {direction}", kinds.get("nvlink", [])),
            kinds.get(f"nic {direction}", []),
        )
        if nvlink and nic:
            kinds[f"nvlink and nic {direction}"] = nvlink + nic
    return dict(sorted(kinds.items()))


def _hop_prices(problem: Problem, price_GG: Floats) -> tuple[Floats, Floats]:
    """What a message for an expert on GPU g costs source s on its way to that GPU, and before on its way to that unit."""
    if problem.workload.transport != "node":
        return price_GG, np.zeros_like(price_GG)
    unit_G = units(problem)
    to_gpu_GG, to_unit_GG = price_GG.copy(), np.zeros_like(price_GG)
    for unit, forwarder_G in enumerate(_forwarder_GU(unit_G).T):
        outside, member = np.flatnonzero(unit_G != unit), np.flatnonzero(unit_G == unit)
        forwarder = forwarder_G[outside]
        to_gpu_GG[np.ix_(outside, member)] = price_GG[np.ix_(forwarder, member)]
        to_unit_GG[np.ix_(outside, member)] = price_GG[outside, forwarder][:, None]
    return to_gpu_GG, to_unit_GG


def _toll_C(problem: Problem, price_GG: Floats) -> Floats:
    """The least sum over sources of the price to an expert's replicas, for 1 to C of them; convex in the count."""
    counts = min(problem.gpus, problem.redundant + 1)
    if problem.replica_rule in ALIKE:  # shares may differ over replicas, but not over sources
        return np.full(counts, price_GG.sum(axis=0).min())
    dearest_S = price_GG.max(axis=1)
    saved_G = np.sort((dearest_S[:, None] - price_GG).sum(axis=0))[
        ::-1
    ]  # by a replica on each GPU; several together save no more than their sum
    toll_C = np.maximum(dearest_S.sum() - np.cumsum(saved_G)[:counts], price_GG.min(axis=1).sum())
    if problem.replica_rule == "fixed-by-source":
        toll_C = np.maximum(
            toll_C, convex(np.array([_by_turns(price_GG, count) for count in range(1, counts + 1)]))
        )
    return np.asarray(toll_C)


def _by_turns(price_GG: Floats, count: int) -> float:
    """Rank r uses replica r mod count: each of these groups of ranks has one GPU to send to."""
    return float(sum(price_GG[turn::count].sum(axis=0).min() for turn in range(count)))


def _by_rounds(problem: Problem, share_E: Floats, tariff: Tariff, weights: tuple[Floats, Floats]) -> float:
    """The least total where ranks go round the replicas: what every replica gets of every rank at least is spread as by sources that are alike."""
    top_k, tokens = problem.model.top_k, problem.workload.tokens_per_rank
    chance_E, counts = np.minimum(top_k * share_E, 1.0), len(tariff.to_gpu_C)
    alike_EC = np.zeros((len(share_E), counts))
    alike_EC[:, 0] = 1.0
    hottest = np.argsort(-share_E, kind="stable")[:HOTTEST]
    for count in range(2, min(counts, MOST_ROUND) + 1):
        alike_EC[hottest, count - 1] = count * expected_shares(chance_E[hottest], count, tokens, top_k).min(
            axis=1
        )
    value_EC = sum(
        (
            weight_E[:, None] * (toll_C + alike_EC * (toll_C[0] - toll_C))
            for weight_E, toll_C in zip(weights, (tariff.to_gpu_C, tariff.to_unit_C), strict=True)
        ),
        np.zeros_like(alike_EC),
    )
    return least_total(value_EC, problem.redundant)


def least_messages(problem: Problem, load: LoadProfile) -> list[tuple[Floats, Floats]]:
    """For every layer the messages a token on account of each expert, at least: to its GPU, and to its unit before."""
    top_k, experts, transport = problem.model.top_k, problem.model.experts, problem.workload.transport
    none_E = np.zeros(experts)
    if transport == "slot":
        return [(top_k * share_E, none_E) for share_E in load.shares_LE]
    sizes = (
        problem.slots_per_gpu,
        *((problem.slots_per_gpu * int(np.bincount(units(problem)).max()),) if transport == "node" else ()),
    )
    found = []
    for layer, share_E in enumerate(load.shares_LE):
        if load.trace is not None and load.trace.recorded_L[layer]:
            least_XE = messages_of_trace_XE(load.trace.experts_LTK[layer], experts, sizes)
        else:
            least_XE = [messages_E(share_E, top_k, size) for size in sizes]
        found.append((least_XE[0], least_XE[1] if transport == "node" else none_E))
    return found


def _to_busiest_place_L(problem: Problem, load: LoadProfile, peak_load_L: Floats) -> Floats:
    """Messages from every source to some place, at least: to a GPU, or to a unit for transport `node`; for `slot` over the GPU's speed.

    Experts that all sources find at the same places are looked at: all of them where the rule is so, else those without a replica. A place with m of a
    token's picks gets 1 - (1 - m / k)^k messages at least, and some place has no fewer picks than the mean. A trace does not say so.
    """
    alike, transport = problem.replica_rule in ALIKE, problem.workload.transport
    if transport == "slot":
        return peak_load_L / problem.gpus if alike else np.zeros(len(peak_load_L))
    places = problem.gpus if transport == "rank" else int(units(problem).max()) + 1
    messages_L = np.zeros(len(peak_load_L))
    for layer, share_E in enumerate(load.shares_LE):
        if load.trace is None or not load.trace.recorded_L[layer]:
            chance_E = np.sort(inclusion_E(share_E, problem.model.top_k))[::-1]
            picks, found = float(chance_E.sum()), float(chance_E[0 if alike else problem.redundant :].sum())
            messages_L[layer] = problem.workload.tokens_per_rank * (1 - (1 - found / places / picks) ** picks)
    return messages_L


def _seconds_per_byte(problem: Problem, speed_G: Floats, rate_R: Floats, *, back: bool) -> float:
    """Seconds of the slowest link where every source sends one byte to the same place; to the place where it takes least."""
    unit_G = units(problem)
    seconds = []
    for place in range(int(unit_G.max()) + 1 if problem.workload.transport == "node" else problem.gpus):
        bytes_GG = np.zeros((problem.gpus, problem.gpus))
        if problem.workload.transport == "node":
            outside = np.flatnonzero(unit_G != place)
            bytes_GG[outside, _forwarder_GU(unit_G)[outside, place]] = 1.0
        else:
            bytes_GG[:, place] = speed_G[place] if problem.workload.transport == "slot" else 1.0
        seconds.append(
            (problem.topology.resource_bytes(bytes_GG.T if back else bytes_GG) / rate_R).max(initial=0.0)
        )
    return float(min(seconds))


def _forwarder_GU(unit_G: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The GPU of each unit that gets a source's message for it: the one of the source's index, as traffic has it."""
    index_G = np.empty(len(unit_G), dtype=np.int64)
    members = [np.flatnonzero(unit_G == unit) for unit in range(int(unit_G.max()) + 1)]
    for member in members:
        index_G[member] = np.arange(len(member))
    return np.stack([member[index_G % len(member)] for member in members], axis=1)


def _fixed_volume(
    problem: Problem, rate_R: Floats, message_bytes: float, layers: int, *, back: bool
) -> PhaseBound:
    sent_GG = (
        messages_GG(problem, Routing(np.empty(0), np.empty((1, 0)), np.empty(0, dtype=np.int64)))
        * message_bytes
    )
    seconds = float(
        (problem.topology.resource_bytes(sent_GG.T if back else sent_GG) / rate_R).max(initial=0.0)
    )
    return PhaseBound(np.full(layers, seconds), ("fixed volume",) * layers)
