"""`lp`: SGLang's `lp` dispatch splits each batch over the replicas so that the busiest GPU has least, whatever is near.

Source: SGLang 0.5.23, srt/eplb/lplb_solver.py. The engine solves it for each batch by an interior-point method on the GPU; here OR-Tools solves it once
for the load's shares. Both reach the same busiest GPU; where several splits do, theirs may differ from ours. With a mapping file the engine first cuts
each rank's list to its near replica, and its split then concerns only what is left: this rule is the one of full lists, and the best that `lp` can reach.
"""

from collections.abc import Iterator

import numpy as np

from planner.placement import Placement
from planner.replica.situation import Ids, Shares, Situation, first_slots


def lp(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """The best fractional split of the situation's load, the same on every rank. Draft layers have no map, and use the first slot of each expert."""
    for row, layer in enumerate(placement.layer_ids):
        expert_P = placement.expert_LP[row]
        yield best_split_1P(expert_P, situation.share_E(row), placement.gpus) if layer < situation.model.layers else first_slots(expert_P)


def best_split_1P(expert_P: Ids, load_E: Shares, gpus: int) -> Shares:
    """share_1P that minimises the load of the busiest GPU; experts without load are split evenly."""
    from ortools.linear_solver import pywraplp  # type: ignore[import-untyped]

    replicas_P = np.bincount(expert_P, minlength=len(load_E))[expert_P]
    share_1P = 1.0 / replicas_P[None, :]
    split_P = (replicas_P > 1) & (load_E[expert_P] > 0)
    if not split_P.any():
        return share_1P
    solver = pywraplp.Solver.CreateSolver("GLOP")
    peak = solver.NumVar(0.0, solver.infinity(), "")
    part = {slot: solver.NumVar(0.0, 1.0, "") for slot in np.flatnonzero(split_P).tolist()}
    scale = float(load_E.sum())
    for slots in np.split(np.arange(len(expert_P)), gpus):
        fixed = float(load_E[expert_P[slots[~split_P[slots]]]].sum()) / scale
        moving = sum((part[slot] * (float(load_E[expert_P[slot]]) / scale) for slot in slots[split_P[slots]].tolist()), fixed)
        solver.Add(moving <= peak)
    for expert in np.unique(expert_P[split_P]).tolist():
        solver.Add(sum(part[slot] for slot in np.flatnonzero(expert_P == expert).tolist()) == 1)
    solver.Minimize(peak)
    status = solver.Solve()
    assert status == pywraplp.Solver.OPTIMAL, f"GLOP ended with status {status}"  # an even split is feasible
    for slot, variable in part.items():
        share_1P[0, slot] = max(variable.solution_value(), 0.0)
    sums_E = np.bincount(expert_P, share_1P[0], len(load_E))
    return np.asarray(share_1P / sums_E[expert_P])
