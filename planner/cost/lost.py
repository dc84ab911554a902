"""Losses: which of them are looked at, and how well the GPUs that are left would be balanced.

Copies that are left share an expert's load evenly here, whatever the engine's rule: that is quick, and finds
the worst losses, whose steps are then predicted under the rule itself.

Shapes: L layers, E experts, P slots, G GPUs.
"""

from dataclasses import dataclass, replace
from itertools import islice
from math import comb

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, Survival, loss_sets

LOSS_WORK = 80_000_000  # slots looked at over all losses and layers: a few seconds
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Told:
    """The layers with a signal, unless there are none: the others are no part of any balance figure.

    `speed_G` as a Problem has it.
    """

    shares_LE: Floats
    placement: Placement
    speed_G: Floats


def told(problem: Problem, load: LoadProfile, placement: Placement) -> Told:
    told_L = load.total_LE.any(axis=1)
    rows = np.flatnonzero(told_L | ~told_L.any())
    layer_ids = tuple(placement.layer_ids[row] for row in rows)
    some = replace(placement, expert_LP=placement.expert_LP[rows], layer_ids=layer_ids)
    speed_G = np.ones(problem.gpus) if problem.speed_G is None else problem.speed_G
    return Told(load.shares_LE[rows], some, speed_G)


def losses_to_look_at(problem: Problem, survive: Survival, looked: Told) -> tuple[int, list[tuple[int, ...]]]:
    """How many losses there are; and all of them where that is quick, else the worst one found by adding GPU
    after GPU, and a drawn sample (seed 0), in order.
    """
    possible = problem.topology.node_count if survive.node else comb(problem.gpus, survive.gpus)
    affordable = max(LOSS_WORK // looked.placement.expert_LP.size, 16)
    if possible <= affordable:
        return possible, list(islice(loss_sets(survive, problem.node_G), possible))
    draw = np.random.default_rng(0)
    drawn = (draw.choice(problem.gpus, survive.gpus, replace=False) for _ in range(affordable))
    some = {*(tuple(sorted(lost_G.tolist())) for lost_G in drawn), _greedy_worst(looked, survive.gpus)}
    return possible, sorted(some)


def surviving_rows(placement: Placement, lost: tuple[int, ...]) -> Placement:
    """The rows of the GPUs that are left, ranks closed up."""
    alive_G = np.ones(placement.gpus, dtype=bool)
    alive_G[list(lost)] = False
    alive_P = np.repeat(alive_G, placement.slots_per_gpu)
    return Placement(placement.expert_LP[:, alive_P], placement.layer_ids, int(alive_G.sum()))


def lost_experts_K(placement: Placement, experts: int, sets: list[tuple[int, ...]]) -> list[int]:
    """How many experts of all layers each loss leaves without a slot."""
    layers, gpus = len(placement.layer_ids), placement.gpus
    holds_LEG = np.zeros((layers, experts, gpus), dtype=bool)
    rows_LP = np.broadcast_to(np.arange(layers)[:, None], placement.expert_LP.shape)
    holds_LEG[rows_LP, placement.expert_LP, np.broadcast_to(placement.gpu_P, rows_LP.shape)] = True
    held_LE = holds_LEG.sum(axis=2)
    return [int((holds_LEG[:, :, list(lost)].sum(axis=2) == held_LE).sum()) for lost in sets]


def balance(looked: Told, lost: tuple[int, ...]) -> float:
    """max/mean of the survivors: busiest GPUs (load over speed) summed over layers, over what perfect balance
    would be. The load of an expert that has no slot left is no part of it.
    """
    left = surviving_rows(looked.placement, lost)
    replicas_LE = left.replicas_LE(looked.shares_LE.shape[1])
    value_LP = np.take_along_axis(looked.shares_LE / np.maximum(replicas_LE, 1), left.expert_LP, axis=1)
    load_LG = value_LP.reshape(len(value_LP), left.gpus, -1).sum(axis=2)
    speed_G = np.delete(looked.speed_G, list(lost))
    return float((load_LG / speed_G).max(axis=1).sum() / (load_LG.sum() / speed_G.sum()))


def _greedy_worst(looked: Told, gpus: int) -> tuple[int, ...]:
    lost: tuple[int, ...] = ()
    for _ in range(gpus):
        others = [gpu for gpu in range(looked.placement.gpus) if gpu not in lost]
        worst = max(others, key=lambda gpu: (balance(looked, (*lost, gpu)), -gpu))
        lost = tuple(sorted((*lost, worst)))
    return lost
