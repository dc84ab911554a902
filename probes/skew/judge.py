"""How good the predictions were: errors, order, winners and bottlenecks. Pure.

Shapes: N cells.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from probes.dispatch.timed import EXCHANGES
from probes.dispatch.verdict import LawError, judge_speed
from probes.skew.measured import Measured
from probes.skew.shapes import shape

Floats = npt.NDArray[np.float64]
LAW = dict.fromkeys(EXCHANGES, LawError(0.10, "what this benchmark aims at"))
APART = 0.10  # pairs that were measured nearer to each other have no winner


@dataclass(frozen=True)
class Cell:
    """One phase of one setting under one placement. Seconds of the slowest rank, the median over repeats.

    `modelled` is what the cost model says of the load, `drawn` of the tokens that were drawn from it.
    """

    shape: str
    transport: str
    setting: str
    side: str
    phase: str
    modelled: float
    drawn: float
    measured: float


def cells_of(found: Iterable[Measured]) -> list[Cell]:
    """Dispatch and combine; expert compute is that of the machine at hand, which nothing predicts."""
    return [
        Cell(
            one.shape,
            one.transport,
            one.settings[timed.row],
            timed.side,
            phase,
            timed.expected.modelled[phase],
            timed.expected.drawn[phase],
            timed.seconds(phase),
        )
        for one in found
        for timed in one.timed
        for phase in EXCHANGES
    ]


@dataclass(frozen=True)
class Errors:
    """Of predicted / measured - 1: mean of its size, mean, largest size."""

    cells: int
    mape: float
    bias: float
    worst: float


def errors(predicted: Sequence[float], measured: Sequence[float]) -> Errors:
    error_N = np.array(predicted) / np.array(measured) - 1
    size_N = np.abs(error_N)
    return Errors(len(error_N), float(size_N.mean()), float(error_N.mean()), float(size_N.max()))


def errors_of(cells: Sequence[Cell], predicted: Callable[[Cell], float]) -> Errors:
    return errors([predicted(cell) for cell in cells], [cell.measured for cell in cells])


@dataclass(frozen=True)
class Whole:
    """Both phases of one setting under one placement."""

    shape: str
    transport: str
    setting: str
    side: str
    modelled: float
    measured: float


def wholes_of(cells: Iterable[Cell]) -> list[Whole]:
    found: dict[tuple[str, str, str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        found[cell.shape, cell.transport, cell.setting, cell.side].append(cell)
    return [
        Whole(*key, sum(one.modelled for one in parts), sum(one.measured for one in parts))
        for key, parts in found.items()
    ]


def rank_correlation(a_N: Floats, b_N: Floats) -> float:
    """Spearman's; what is equal shares its ranks. Zero where all is equal on one side.

    >>> round(rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])), 3)
    0.5
    """
    if (a_N == a_N[0]).all() or (b_N == b_N[0]).all():
        return 0.0
    return float(np.corrcoef(_ranks(a_N), _ranks(b_N))[0, 1])


def _ranks(values_N: Floats) -> Floats:
    _, which_N, count_X = np.unique(values_N, return_inverse=True, return_counts=True)
    last_X = np.cumsum(count_X)
    return np.asarray((last_X - (count_X - 1) / 2)[which_N])


@dataclass(frozen=True)
class Winners:
    """Pairs measured apart, how many of them had their winner predicted, and those that had not."""

    pairs: int
    right: int
    wrong: tuple[tuple[Whole, Whole], ...]


def winners(wholes: Iterable[Whole], alike: Callable[[Whole], Hashable]) -> Winners:
    """Over all pairs that are `alike`, such as two placements of one setting."""
    groups: dict[Hashable, list[Whole]] = defaultdict(list)
    for one in wholes:
        groups[alike(one)].append(one)
    apart = [
        sorted(pair, key=lambda one: one.measured)
        for group in groups.values()
        for pair in combinations(group, 2)
        if max(one.measured for one in pair) > (1 + APART) * min(one.measured for one in pair)
    ]
    wrong = tuple((faster, slower) for faster, slower in apart if faster.modelled >= slower.modelled)
    return Winners(len(apart), len(apart) - len(wrong), wrong)


def by_placement(one: Whole) -> Hashable:
    """Pairs of two placements."""
    return one.shape, one.transport, one.setting


def by_transport(one: Whole) -> Hashable:
    """Pairs of two transports."""
    return one.shape, one.side, one.setting


def by_load(one: Whole) -> Hashable:
    """Pairs of two loads."""
    return one.shape, one.transport, one.side


@dataclass(frozen=True)
class Waits:
    """Phases of settings, and of how many the resource predicted is the one that the times show.

    `untold`: the times are too far from what any resource says.
    """

    phases: int
    right: int
    untold: int


def waits(found: Iterable[Measured]) -> Waits:
    """By the verdict of `moeplan validate`."""
    agree = [
        layer.wait.agrees
        for one in found
        for layer in judge_speed(one.timed, shape(one.shape), LAW).layers
        if layer.wait is not None
    ]
    return Waits(len(agree), agree.count(True), agree.count(None))


def correlations(wholes: Sequence[Whole], alike: float = 0.0) -> Mapping[str, float]:
    """By shape, over all settings, placements and transports of it.

    Those whose predictions are within the share `alike` of the quickest of them count as one, with their
    means: the law claims no order among them.
    """
    found = {}
    for name in dict.fromkeys(one.shape for one in wholes):
        groups: list[list[Whole]] = []
        for one in sorted((one for one in wholes if one.shape == name), key=lambda one: one.modelled):
            if groups and alike and one.modelled <= groups[-1][0].modelled * (1 + alike):
                groups[-1].append(one)
            else:
                groups.append([one])
        predicted_N = np.array([np.mean([one.modelled for one in group]) for group in groups])
        measured_N = np.array([np.mean([one.measured for one in group]) for group in groups])
        found[name] = rank_correlation(predicted_N, measured_N)
    return found
