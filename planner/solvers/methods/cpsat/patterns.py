"""One tiny layer as a choice of patterns: sets of experts that one GPU may hold, and how many GPUs hold each.

GPUs then have no names, so no two orders of the same GPUs are searched; that proves in a tenth of the time
what placing replica by replica does.

Shapes: E experts, G GPUs, S slots a GPU.
"""

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MOST_PATTERNS = 300  # sets of S of E experts; beyond, placing replica by replica is as good in less time


class Patterns(NamedTuple):
    """The model, and how many GPUs hold each set of experts."""

    model: "cp_model.CpModel"
    gpus_of: dict[tuple[int, ...], "cp_model.IntVar"]


def fits(experts: int, slots_per_gpu: int) -> bool:
    return math.comb(experts, slots_per_gpu) <= MOST_PATTERNS


def build(
    load_E: npt.NDArray[np.float64],
    counts: list[range],
    scale: float,
    start_GS: npt.NDArray[np.integer],
    least_peak: float,
) -> Patterns:
    """The model, which minimises the peak in whole units, from a placement that holds.

    `counts`: the replica counts of each expert that matter.
    """
    from ortools.sat.python import cp_model

    gpus, slots = start_GS.shape
    units = {(e, k): int(np.floor(load_E[e] * scale / k)) for e, some in enumerate(counts) for k in some}
    replicas_E = np.bincount(start_GS.ravel(), minlength=len(load_E)).tolist()
    start = [tuple(sorted(row)) for row in start_GS.tolist()]
    start_peak = max(sum(units[e, replicas_E[e]] for e in pattern) for pattern in start)
    model = cp_model.CpModel()
    least_units = max(math.floor(least_peak * scale * (1 - 1e-9)) - slots, 0)
    peak = model.new_int_var(min(least_units, start_peak), start_peak, "peak")
    chosen = {entry: model.new_bool_var("") for entry in units}
    lightest = [min(units[e, k] for k in some) for e, some in enumerate(counts)]
    patterns = _light(lightest, slots, start_peak)
    gpus_of = {pattern: model.new_int_var(0, gpus, "") for pattern in patterns}
    for pattern, number in gpus_of.items():
        used = model.new_bool_var("")
        model.add(number <= gpus * used)
        model.add(number >= used)
        load = sum(units[e, k] * chosen[e, k] for e in pattern for k in counts[e])
        model.add(load <= peak).only_enforce_if(used)
        model.add_hint(number, start.count(pattern))
        model.add_hint(used, int(pattern in start))
    model.add(sum(gpus_of.values()) == gpus)
    _tie_counts(model, chosen, gpus_of, counts, replicas_E)
    model.add_hint(peak, start_peak)
    model.minimize(peak)
    return Patterns(model, gpus_of)


def _light(lightest: list[int], slots: int, most: int) -> list[tuple[int, ...]]:
    """Sets of experts that, with as many replicas as may be, weigh no more than that."""
    sets = combinations(range(len(lightest)), slots)
    return [pattern for pattern in sets if sum(lightest[e] for e in pattern) <= most]


def _tie_counts(
    model: "cp_model.CpModel",
    chosen: dict[tuple[int, int], "cp_model.IntVar"],
    gpus_of: dict[tuple[int, ...], "cp_model.IntVar"],
    counts: list[range],
    replicas_E: list[int],
) -> None:
    """An expert has as many replicas as GPUs hold it."""
    for e, some in enumerate(counts):
        model.add_exactly_one(chosen[e, k] for k in some)
        holders = sum(number for pattern, number in gpus_of.items() if e in pattern)
        model.add(holders == sum(k * chosen[e, k] for k in some))
        for k in some:
            model.add_hint(chosen[e, k], int(k == replicas_E[e]))
