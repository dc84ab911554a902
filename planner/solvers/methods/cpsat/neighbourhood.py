"""One large layer, improved a few GPUs at a time: CP-SAT packs the replicas of the busiest and others anew.

Replica counts stay as they are.

Shapes: E experts, G GPUs, Q of them at a time, S slots a GPU, P = G * S.
"""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import Ints, Loads
from planner.solvers.methods.cpsat.integers import Effort, run, whole_scale

GPUS_AT_ONCE = 3
FAILURES = 10  # in a row, then the layer is left


def improve(
    load_E: Loads,
    expert_P: npt.NDArray[np.integer],
    gpus: int,
    *,
    goal: float,
    rounds: int = 30,
    node_G: Ints | None = None,
    effort: Effort = Effort(0.03),  # noqa: B008 - frozen
) -> Ints:
    """expert_P with a busiest GPU no higher, until it is at `goal` or the rounds end.

    `effort` is for one round. With `node_G` experts stay on their nodes.
    """
    drawn = np.random.default_rng(effort.seed)
    node = np.zeros(gpus, dtype=np.int64) if node_G is None else node_G
    expert_GS = np.array(expert_P, dtype=np.int64).reshape(gpus, -1)
    value_E = load_E / np.maximum(np.bincount(expert_GS.ravel(), minlength=len(load_E)), 1)
    failures = 0
    for _ in range(rounds):
        load_G = value_E[expert_GS].sum(axis=1)
        hot = int(load_G.argmax())
        others = np.flatnonzero((np.arange(gpus) != hot) & (node == node[hot]))
        if load_G[hot] <= goal or failures >= FAILURES or not len(others):
            break
        some = _chosen(hot, others[np.argsort(load_G[others], kind="stable")], drawn)
        packed_QS = _pack_anew(value_E, expert_GS[some], goal, effort)
        improved = value_E[packed_QS].sum(axis=1).max() < load_G[hot] * (1 - 1e-9)
        failures = 0 if improved else failures + 1
        if improved:
            expert_GS[some] = packed_QS
    return expert_GS.ravel()


def _chosen(hot: int, others: Ints, drawn: np.random.Generator) -> Ints:
    """GPUs to pack anew: the busiest and the coldest always, the rest by chance. `others`: coldest first."""
    drawn_others = drawn.permutation(others[1:])[: GPUS_AT_ONCE - 2]
    return np.concatenate([[hot], others[:1], np.sort(drawn_others)])


def _pack_anew(value_E: Loads, expert_QS: Ints, goal: float, effort: Effort) -> Ints:
    """The same replicas over the same GPUs with the least peak found, no lower than needed.

    As they were where nothing was found.
    """
    from ortools.sat.python import cp_model

    rows, slots = expert_QS.shape
    experts, copies = np.unique(expert_QS, return_counts=True)
    scale, _ = whole_scale(value_E[expert_QS].ravel(), 1)
    units = np.floor(value_E[experts] * scale).astype(np.int64).tolist()
    model = cp_model.CpModel()
    here = [[model.new_bool_var("") for _ in range(rows)] for _ in units]
    now = int(np.floor(value_E[expert_QS] * scale).sum(axis=1).max())
    # At the goal it may stop: going on costs time and helps nobody
    peak = model.new_int_var(min(int(goal * scale), now), now, "peak")
    for index, expert in enumerate(experts):
        model.add(sum(here[index]) == int(copies[index]))
        for row in range(rows):
            model.add_hint(here[index][row], int(expert in expert_QS[row]))
    for row in range(rows):
        model.add(sum(column[row] for column in here) == slots)
        model.add(sum(unit * column[row] for unit, column in zip(units, here, strict=True)) <= peak)
    model.minimize(peak)
    solver, found = run(model, effort)
    if not found:
        return expert_QS

    def packed(row: int) -> list[int]:
        return [
            expert for expert, column in zip(experts, here, strict=True) if solver.boolean_value(column[row])
        ]

    return np.array([packed(row) for row in range(rows)])
