"""Perfect balance in every step, as MoonEP makes it: what a step takes, the weights it fetches included.

Experts are at home where the engine's own list has them. For each layer of each step the GPUs with more than
the mean hand on tokens to those with less, and these fetch the experts' weights first, over the same links as
dispatch. Every GPU then has tokens · top-k assignments, whatever the routing. Planning is taken to cost
nothing. Source: MoonEP's README (https://github.com/MoonshotAI/MoonEP), read; not run.

Shapes: L layers, E experts, G GPUs, R resources, W windows.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.cost.compute import compute_seconds_G, touched_slots_G
from planner.cost.constants import constants_of
from planner.cost.phase import Phase, efficiency_R
from planner.cost.priced import Cost
from planner.cost.routing import Floats, Ints, Routing
from planner.cost.step import cost as priced
from planner.cost.traffic import message_bytes
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule

ROUNDING = 1e-9  # of the mean load


@dataclass(frozen=True, eq=False)
class Perfect:
    """A step under perfect balance on one load."""

    cost: Cost
    fetch_seconds: float  # all layers, beside what `cost` says
    fetched: float  # experts, over layers and GPUs, a step
    buffer_experts: int  # the most that one GPU fetches in a layer


def perfect_balance(problem: Problem, home: Placement, load: LoadProfile) -> Perfect:
    """`home` holds every expert; `problem` is the question with as many slots."""
    before = priced(problem, home, load)
    dispatch, combine = _even_seconds(problem)
    rows = zip(find_rule(problem.replica_rule)(home, problem.situation(load)), load.shares_LE, strict=True)
    fetch_L, compute_L, fetched, most = [], [], 0.0, 0
    assignments = problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k
    capacity_R = problem.topology.capacity_R * efficiency_R(problem, constants_of(problem).dispatch)
    for (share_SP, share_E), expert_P in zip(rows, home.expert_LP, strict=True):
        home_E = _home_E(expert_P, problem)
        fetches_GG = _fetches_GG(handed_on(home_E, share_E * assignments, problem.gpus), problem.gpus)
        bytes_GG = fetches_GG * problem.model.expert_bytes
        fetch_L.append(float((problem.topology.resource_bytes(bytes_GG) / capacity_R).max(initial=0.0)))
        touched_G = touched_slots_G(problem, Routing(share_E, share_SP, expert_P)) + fetches_GG.sum(axis=0)
        even_G = np.full(problem.gpus, assignments / problem.gpus)
        compute_L.append(float(compute_seconds_G(problem, even_G, touched_G).max()))
        fetched += float(fetches_GG.sum())
        most = max(most, int(fetches_GG.sum(axis=0).max(initial=0)))
    layers = len(home.layer_ids)
    found = replace(
        before,
        load_LG=np.full((layers, problem.gpus), assignments / problem.gpus),
        dispatch_seconds_L=np.full(layers, dispatch),
        compute_seconds_L=np.array(compute_L),
        combine_seconds_L=np.full(layers, combine),
    )
    return Perfect(found, float(sum(fetch_L)), fetched, most)


def _home_E(expert_P: Ints, problem: Problem) -> Ints:
    """The GPU of the first slot of each expert."""
    first_E = np.zeros(problem.model.experts, dtype=np.int64)
    first_E[expert_P[::-1]] = np.arange(len(expert_P))[::-1]
    return np.asarray(first_E // problem.slots_per_gpu)


class Handed(NamedTuple):
    """So many assignments of an expert go from its home to a GPU that fetches it."""

    expert: int
    giver: int
    taker: int
    assignments: float


def handed_on(home_E: Ints, load_E: Floats, gpus: int) -> list[Handed]:
    """What makes all GPUs carry the mean.

    The GPU with most to give begins, and gives of its hottest expert, to the GPU that lacks most.

    >>> handed_on(np.array([0, 0, 1, 1]), np.array([5.0, 1.0, 1.0, 1.0]), 2)
    [Handed(expert=0, giver=0, taker=1, assignments=2.0)]
    """
    load_G = np.bincount(home_E, weights=load_E, minlength=gpus)
    mean = float(load_G.mean())
    least = ROUNDING * mean
    lacks_G = np.maximum(mean - load_G, 0.0)
    found: list[Handed] = []
    for giver in np.argsort(-load_G, kind="stable").tolist():
        surplus = float(load_G[giver]) - mean
        experts = np.flatnonzero(home_E == giver)
        for expert in experts[np.argsort(-load_E[experts], kind="stable")].tolist():
            left = min(float(load_E[expert]), surplus)
            surplus -= left
            while left > least:
                taker = int(lacks_G.argmax())
                given = min(left, float(lacks_G[taker]))
                if given <= least:  # what is left is rounding
                    break
                found.append(Handed(expert, giver, taker, given))
                lacks_G[taker] -= given
                left -= given
    return found


def _fetches_GG(handed: list[Handed], gpus: int) -> Floats:
    """How many experts of GPU g (row) GPU h (column) fetches."""
    found_GG = np.zeros((gpus, gpus))
    for one in handed:
        found_GG[one.giver, one.taker] += 1
    return found_GG


def _even_seconds(problem: Problem) -> tuple[float, float]:
    """Seconds of dispatch and combine where every GPU sends as many entries to each, one message each."""
    gpus, workload = problem.gpus, problem.workload
    even_GG = np.full((gpus, gpus), workload.tokens_per_rank * problem.model.top_k / gpus)
    there, back = problem.topology.there_and_back(even_GG)
    constants, sizes = constants_of(problem), message_bytes(problem)
    dispatch = Phase(problem, constants.dispatch, sizes[0]).seconds(there)[0]
    return dispatch, Phase(problem, constants.combine, sizes[1]).seconds(back)[0]
