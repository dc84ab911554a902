"""`lp`: SGLang's `lp` dispatch splits each batch so that the busiest GPU has least, whatever is near.

Source: SGLang 0.5.23, srt/eplb/lplb_solver.py. The engine solves it for each batch by an interior-point
method on the GPU; here OR-Tools solves it once for the load's shares. Both reach the same busiest GPU; where
several splits do, theirs may differ from ours. With a mapping file the engine first cuts each rank's list to
its near replica, and its split then concerns only what is left: this rule is the one of full lists, and the
best that `lp` can reach.

Shapes: W windows, E experts, G GPUs, P slots.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from planner.placement import Placement
from planner.replica.situation import Ids, Shares, Situation, first_slots

# For an even split, in a steady one: the peak that an expert's whole load on other replicas is worth, beside
# that load.
LIKING = 0.01


def lp(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """The best fractional split of the situation's load, the same on every rank.

    Draft layers have no map, and use the first slot of each expert.
    """
    for row, layer_id in enumerate(placement.layer_ids):
        expert_P = placement.expert_LP[row]
        if layer_id < situation.model.layers:
            yield best_split_1P(expert_P, situation.share_E(row), placement.gpus)
        else:
            yield first_slots(expert_P)


def best_split_1P(expert_P: Ids, load_E: Shares, gpus: int) -> Shares:
    """share_1P that minimises the load of the busiest GPU; experts without load are split evenly."""
    return _split_1P(expert_P, load_E[None], gpus, liking=0.0)


def steady_split_1P(expert_P: Ids, load_WE: Shares, gpus: int) -> Shares:
    """share_1P to keep over all windows: it minimises the mean of their busiest GPUs.

    Of equally good splits it takes the most even. Windows count alike, whatever their totals. A corner of the
    best single-window split, which `best_split_1P` gives, fits that window alone.
    """
    totals_W1 = load_WE.sum(axis=1, keepdims=True)
    heard_WE = (load_WE / np.maximum(totals_W1, 1e-300))[totals_W1[:, 0] > 0]
    return _split_1P(expert_P, heard_WE, gpus, liking=LIKING)


def _split_1P(expert_P: Ids, load_WE: Shares, gpus: int, liking: float) -> Shares:
    from ortools.linear_solver import pywraplp  # type: ignore[import-untyped]

    load_E = load_WE.sum(axis=0)
    replicas_P = np.bincount(expert_P, minlength=len(load_E))[expert_P]
    share_1P = 1.0 / replicas_P[None, :]
    split_P = (replicas_P > 1) & (load_E[expert_P] > 0)
    if not split_P.any():
        return share_1P
    solver = pywraplp.Solver.CreateSolver("GLOP")
    part = {slot: solver.NumVar(0.0, 1.0, "") for slot in np.flatnonzero(split_P).tolist()}
    peaks = [_add_window(solver, part, load_E[expert_P] / load_E.sum(), gpus) for load_E in load_WE]
    for expert in np.unique(expert_P[split_P]).tolist():
        solver.Add(sum(part[slot] for slot in np.flatnonzero(expert_P == expert).tolist()) == 1)
    uneven = _add_uneven(solver, part, share_1P[0], load_E[expert_P] / load_E.sum()) if liking else 0.0
    solver.Minimize(sum(peaks) * (1 / len(peaks)) + liking * uneven)
    status = solver.Solve()
    assert status == pywraplp.Solver.OPTIMAL, f"GLOP ended with status {status}"  # an even split is feasible
    for slot, variable in part.items():
        share_1P[0, slot] = max(variable.solution_value(), 0.0)
    sums_E = np.bincount(expert_P, share_1P[0], len(load_E))
    return np.asarray(share_1P / sums_E[expert_P])


def _add_window(solver: Any, part: dict[int, Any], load_P: Shares, gpus: int) -> Any:
    """The peak of a window: no GPU's load is above it. `load_P` is the whole load of each slot's expert."""
    peak = solver.NumVar(0.0, solver.infinity(), "")
    for slots in np.split(np.arange(len(load_P)), gpus):
        fixed = float(sum(load_P[slot] for slot in slots.tolist() if slot not in part))
        shared = (part[slot] * float(load_P[slot]) for slot in slots.tolist() if slot in part)
        solver.Add(sum(shared, fixed) <= peak)
    return peak


def _add_uneven(solver: Any, part: dict[int, Any], even_P: Shares, load_P: Shares) -> Any:
    """Load that goes elsewhere than an even split would send it."""
    total = 0.0
    for slot, variable in part.items():
        above = solver.NumVar(0.0, 1.0, "")
        solver.Add(variable - float(even_P[slot]) <= above)
        total = total + above * float(load_P[slot])
    return total
