"""`affinity`: experts that tokens choose together at one place, so that a token reaches fewer of them.

A place is a node, an NVLink domain or a GPU; replicas and balance are searched jointly. Needs a trace, or a
rule under which replicas on many nodes save traffic; where neither helps the answer is that of `refine`.
Shapes: L layers, E experts, N places, W windows, P slots.
"""

import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from planner.placement import Placement
from planner.problem import Problem
from planner.solvers.kernels.arrays import placement_of, refined, refined_fully
from planner.solvers.kernels.packing import Ints
from planner.solvers.methods.affinity.copies import Layer
from planner.solvers.methods.affinity.layers import helps, layer_of, places, reach_of
from planner.solvers.methods.affinity.reach import Reach
from planner.solvers.methods.affinity.search import Search
from planner.solvers.methods.affinity.seats import copies_at, seat
from planner.solvers.registry import Progress

# Messages per token that a mean square imbalance of 1 is worth, and shakes; a search starts where the one
# before ended
PENALTIES = {2.0: 40, 8.0: 12}
SHAKES_WORK = 4_500_000  # at most, in cells of tables
FEWEST_SHAKES = 8  # where there is work for less, shaking is left out
SWAPS_OF_A_SHAKE = (4, 14)
SLACK = 0.03  # by how much the price may rise at most from one local optimum to the next; falls to nothing


def solve(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Placement:
    """The candidate that weighs balance most. Same seed: same placement."""
    offered = list(candidates(problem, seed=seed, budget_seconds=budget_seconds, progress=progress))
    if offered:
        return offered[-1]
    stop = math.inf if budget_seconds is None else time.monotonic() + budget_seconds
    return placement_of(problem, _start(problem, stop))


def candidates(
    problem: Problem, *, seed: int = 0, budget_seconds: float | None = None, progress: Progress | None = None
) -> Iterator[Placement]:
    """One placement for each weight of balance against traffic.

    None where nothing is to be saved, for `refine` is a candidate already. Layers too large to be shaken are
    searched with the first weight alone, and keep that row; where all are so, one placement is offered.
    `budget_seconds` is a wall-clock limit: past it no layer is shaken.
    """
    if not helps(problem):
        return
    stop = math.inf if budget_seconds is None else time.monotonic() + budget_seconds
    place_G, reach = places(problem), reach_of(problem)
    place_P = np.repeat(place_G, problem.slots_per_gpu)
    copies_LEN = copies_at(_start(problem, stop), place_P, problem.model.experts)
    layers = [layer_of(problem, reach, row) for row in range(len(copies_LEN))]
    large_L = [_too_large(layer, copies_EN) for layer, copies_EN in zip(layers, copies_LEN, strict=True)]
    for number, (penalty, shakes) in enumerate(PENALTIES.items()):
        again = [row for row in range(len(layers)) if number == 0 or not large_L[row]]
        if not again:
            break
        for row in again:
            if progress is not None:
                progress((number + row / len(layers)) / len(PENALTIES), "affinity")
            random = np.random.default_rng([seed, number, problem.model.placed_layer_ids[row]])
            search = Search(layers[row], copies_LEN[row], penalty)
            copies_LEN[row] = settled(search, shakes, random, lambda: time.monotonic() < stop)
        yield _seated(problem, reach, copies_LEN, place_G)


def _too_large(layer: Layer, copies_EN: Ints) -> bool:
    return layer.evidence.rugged and _affordable(layer, copies_EN) < FEWEST_SHAKES


def _seated(problem: Problem, reach: Reach, copies_LEN: Ints, place_G: Ints) -> Placement:
    served_LEN, from_away_LEN = reach.served_N(copies_LEN)
    load_LEN = problem.shares_LE[:, :, None] * served_LEN
    # With `node` what arrives comes through the GPU of the sender's index, wherever the expert sits
    by_index = problem.workload.transport == "node"
    away_LEN = load_LEN if by_index else problem.shares_LE[:, :, None] * from_away_LEN
    return placement_of(problem, seat(copies_LEN, load_LEN, away_LEN, place_G))


def _start(problem: Problem, stop: float) -> Ints:
    return refined_fully(problem) if stop == math.inf else refined(problem, lambda _: time.monotonic() < stop)


def settled(
    search: Search, most_shakes: int, random: np.random.Generator, more: Callable[[], bool] = lambda: True
) -> Ints:
    """copies_EN after a descent, and after shakes that each end in another descent; the best of all.

    `more` is asked before each.
    """
    if more():
        search.descend()
    here_EN, here = best_EN, best = search.copies_EN, search.price
    affordable = _affordable(search.layer, here_EN)
    worth_shaking = search.layer.evidence.rugged and affordable >= FEWEST_SHAKES
    shakes = min(affordable, most_shakes) if worth_shaking else 0
    for shake in range(shakes):
        if not more():
            break
        search.set_copies(here_EN)
        search.shake(int(random.integers(*SWAPS_OF_A_SHAKE)), random)
        search.descend()
        if search.price < here + SLACK * (1 - shake / shakes) * random.random():
            here_EN, here = search.copies_EN, search.price
        if here < best:
            best_EN, best = here_EN, here
    return best_EN


def _affordable(layer: Layer, copies_EN: Ints) -> int:
    """Shakes that there is work for."""
    copies = np.count_nonzero(copies_EN)
    tables = copies * (copies + copies_EN.shape[1] * len(layer.reach.weight_X))
    return int(SHAKES_WORK // (layer.evidence.work + tables))
