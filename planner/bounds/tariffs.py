"""Tariffs: what the messages for an expert cost a kind of link, by how many replicas the expert has.

Each message pays the price of its route. An expert with c replicas pays no less than the best c GPUs would
cost it, and the experts share the spare slots.

Shapes: E experts, G GPUs (as sources and destinations), S sources, R resources, U units, C replica counts
(column c - 1 is count c).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.bounds.picks import convex, least_convex_total, least_total
from planner.cost import Floats, units
from planner.problem import Problem
from planner.replica import expected_shares

# rules by which every source uses an expert's replicas in the same proportion
ALIKE = ("even", "row-index", "hashed", "lp")
# beyond so many replicas, experts, entries of a rank, ranks are taken to find the nearest replica
MOST_ROUND, HOTTEST, MOST_ENTRIES = 16, 64, 8192


class Tariff(NamedTuple):
    """One kind of link: what an expert's messages cost with c replicas, in seconds per byte, when every
    source sends one message for it.
    """

    name: str
    to_gpu_C: Floats
    to_unit_C: Floats  # first hop of transport `node`

    def least_total(self, weights: tuple[Floats, Floats], extra: int) -> float:
        """What all experts pay at least, with so many spare slots; `weights` as of `least_messages`."""
        to_gpu_E, to_unit_E = weights
        return least_convex_total([(to_gpu_E, self.to_gpu_C), (to_unit_E, self.to_unit_C)], extra)


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
    """Indices of the links of each kind and direction; and NVLink with NICs, for what leaves its GPU takes
    one of them where neither alone is needed.
    """
    kinds: dict[str, list[int]] = {}
    for index, resource in enumerate(problem.topology.resources):
        direction = resource.name.rpartition("/")[2]
        directed = direction in ("in", "out", "up", "down")
        kinds.setdefault(f"{resource.tier} {direction}" if directed else resource.tier, []).append(index)
    for direction in ("in", "out"):
        nvlink = kinds.get(f"nvlink {direction}", kinds.get("nvlink", []))
        nic = kinds.get(f"nic {direction}", [])
        if nvlink and nic:
            kinds[f"nvlink and nic {direction}"] = nvlink + nic
    return dict(sorted(kinds.items()))


def _hop_prices(problem: Problem, price_GG: Floats) -> tuple[Floats, Floats]:
    """What a message for an expert on GPU g costs source s on its way to that GPU, and before on its way to
    that unit.
    """
    if problem.workload.transport != "node":
        return price_GG, np.zeros_like(price_GG)
    unit_G = units(problem)
    to_gpu_GG, to_unit_GG = price_GG.copy(), np.zeros_like(price_GG)
    for unit, forwarder_G in enumerate(forwarder_GU(unit_G).T):
        outside, member = np.flatnonzero(unit_G != unit), np.flatnonzero(unit_G == unit)
        forwarder = forwarder_G[outside]
        to_gpu_GG[np.ix_(outside, member)] = price_GG[np.ix_(forwarder, member)]
        to_unit_GG[np.ix_(outside, member)] = price_GG[outside, forwarder][:, None]
    return to_gpu_GG, to_unit_GG


def _toll_C(problem: Problem, price_GG: Floats) -> Floats:
    """The least sum over sources of the price to an expert's replicas, for 1 to C of them; convex in the
    count.
    """
    counts = min(problem.gpus, problem.redundant + 1)
    if problem.replica_rule in ALIKE:  # shares may differ over replicas, but not over sources
        return np.full(counts, price_GG.sum(axis=0).min())
    dearest_S = price_GG.max(axis=1)
    # by a replica on each GPU; several together save no more than their sum
    saved_G = np.sort((dearest_S[:, None] - price_GG).sum(axis=0))[::-1]
    toll_C = np.maximum(dearest_S.sum() - np.cumsum(saved_G)[:counts], price_GG.min(axis=1).sum())
    if problem.replica_rule == "fixed-by-source":
        by_turns_C = np.array([_by_turns(price_GG, count) for count in range(1, counts + 1)])
        toll_C = np.maximum(toll_C, convex(by_turns_C))
    return np.asarray(toll_C)


def _by_turns(price_GG: Floats, count: int) -> float:
    """Rank r uses replica r mod count: each of these groups of ranks has one GPU to send to."""
    return float(sum(price_GG[turn::count].sum(axis=0).min() for turn in range(count)))


def by_rounds(problem: Problem, share_E: Floats, tariff: Tariff, weights: tuple[Floats, Floats]) -> float:
    """The least total where ranks go round the replicas: what every replica gets of every rank at least is
    spread as by sources that are alike.
    """
    top_k, tokens = problem.model.top_k, problem.workload.tokens_per_rank
    chance_E, counts = np.minimum(top_k * share_E, 1.0), len(tariff.to_gpu_C)
    alike_EC = np.zeros((len(share_E), counts))
    alike_EC[:, 0] = 1.0
    hottest = np.argsort(-share_E, kind="stable")[:HOTTEST]
    for count in range(2, min(counts, MOST_ROUND) + 1):
        least_X = expected_shares(chance_E[hottest], count, tokens, top_k).min(axis=1)
        alike_EC[hottest, count - 1] = count * least_X
    value_EC = np.zeros_like(alike_EC)
    for weight_E, toll_C in zip(weights, (tariff.to_gpu_C, tariff.to_unit_C), strict=True):
        value_EC += weight_E[:, None] * (toll_C + alike_EC * (toll_C[0] - toll_C))
    return least_total(value_EC, problem.redundant)


def forwarder_GU(unit_G: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The GPU of each unit that gets a source's message for it: the one of the source's index, as traffic has
    it.
    """
    index_G = np.empty(len(unit_G), dtype=np.int64)
    members = [np.flatnonzero(unit_G == unit) for unit in range(int(unit_G.max()) + 1)]
    for member in members:
        index_G[member] = np.arange(len(member))
    return np.stack([member[index_G % len(member)] for member in members], axis=1)
