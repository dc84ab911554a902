"""After a loss: what a step of the GPUs that are left is predicted to cost.

It is looked at over the losses that a plan is asked to survive. The surviving replicas of an expert share its
load evenly, every surviving rank brings as many tokens as before, and nothing is re-planned.

Shapes: L layers, E experts, P slots, G GPUs, K losses.
"""

from dataclasses import dataclass, replace
from itertools import islice
from math import comb

import numpy as np
import numpy.typing as npt

from planner.cost.step import cost
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, Survival, loss_sets

LOSS_WORK = 80_000_000  # slots looked at over all losses and layers: a few seconds
MOST_TIMED = 32  # losses whose step is predicted: a quarter the worst balanced, the others evenly spaced
TIMED_WORK = 500_000_000  # cells of traffic matrices that these predictions may take
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """One loss and what the survivors make of it."""

    gpus: tuple[int, ...]
    max_over_mean: float
    total_seconds: float
    tokens_per_s: float  # through the expert layers, of all ranks that are left


@dataclass(frozen=True)
class AfterLoss:
    """What was found over the losses.

    `whole` is before any; balance was looked at for `losses` of `possible` sets, seconds were predicted for
    `timed`.
    """

    survive: Survival
    held_out: bool
    possible: int
    losses: int
    timed: int
    whole: Loss
    worst_balance: Loss
    slowest: Loss
    mean_max_over_mean: float
    mean_seconds: float  # over evenly spaced losses, and so the next
    mean_tokens_per_s: float

    @property
    def exact(self) -> bool:
        """Whether no set of GPUs that may be lost was left out."""
        return self.losses == self.possible


def after_loss(
    problem: Problem, placement: Placement, survive: Survival, load: LoadProfile | None = None
) -> AfterLoss:
    """The worst and mean cost after the losses, on `load` (held out) or the problem's own.

    The placement must survive them.
    """
    possible = _count(survive, problem)
    told = _told(problem, load or problem.load, placement)
    sets = _losses(problem, survive, possible, told)
    balance_K = np.array([_balance(told, lost) for lost in sets])
    # what is left promises nothing
    even = replace(problem, replica_rule="even", survive=None, resplittable=False, kv_floor_bytes=0.0)
    most = int(np.clip(TIMED_WORK // (problem.gpus**2 * len(placement.layer_ids)), 4, MOST_TIMED))
    worst = np.argsort(-balance_K, kind="stable")[: most // 4].tolist()
    spaced = _spaced(len(sets), most)
    looked_at = sorted({*worst, *spaced})
    timed = {k: _timed(even, placement, sets[k], load, float(balance_K[k])) for k in looked_at}
    return AfterLoss(
        survive=survive,
        held_out=load is not None,
        possible=possible,
        losses=len(sets),
        timed=len(timed),
        whole=_timed(even, placement, (), load, _balance(told, ())),
        worst_balance=timed[worst[0]],
        slowest=timed[max(timed, key=lambda k: (timed[k].total_seconds, -k))],
        mean_max_over_mean=float(balance_K.mean()),
        mean_seconds=float(np.mean([timed[k].total_seconds for k in spaced])),
        mean_tokens_per_s=float(np.mean([timed[k].tokens_per_s for k in spaced])),
    )


def _spaced(losses: int, most: int) -> list[int]:
    """All losses, or as many as the worst ones leave time for, evenly spaced."""
    count = losses if losses <= most else most - most // 4
    return sorted({int(k) for k in np.linspace(0, losses - 1, count)})


def surviving(placement: Placement, lost: tuple[int, ...]) -> Placement:
    """The placement on the GPUs that are left, ranks closed up."""
    alive_G = np.ones(placement.gpus, dtype=bool)
    alive_G[list(lost)] = False
    alive_P = np.repeat(alive_G, placement.slots_per_gpu)
    return Placement(placement.expert_LP[:, alive_P], placement.layer_ids, int(alive_G.sum()))


def _count(survive: Survival, problem: Problem) -> int:
    return problem.topology.node_count if survive.node else comb(problem.gpus, survive.gpus)


@dataclass(frozen=True, eq=False)
class _Told:
    """The layers with a signal, unless there are none: the others are no part of any balance figure.

    `speed_G` as a Problem has it.
    """

    shares_LE: Floats
    placement: Placement
    speed_G: Floats


def _told(problem: Problem, load: LoadProfile, placement: Placement) -> _Told:
    told_L = load.total_LE.any(axis=1)
    rows = np.flatnonzero(told_L | ~told_L.any())
    layer_ids = tuple(placement.layer_ids[row] for row in rows)
    some = replace(placement, expert_LP=placement.expert_LP[rows], layer_ids=layer_ids)
    speed_G = np.ones(problem.gpus) if problem.speed_G is None else problem.speed_G
    return _Told(load.shares_LE[rows], some, speed_G)


def _losses(problem: Problem, survive: Survival, possible: int, told: _Told) -> list[tuple[int, ...]]:
    """All of them where that is quick; else the worst one found by adding GPU after GPU, and a drawn sample
    (seed 0), in order.
    """
    affordable = max(LOSS_WORK // told.placement.expert_LP.size, 16)
    if possible <= affordable:
        return list(islice(loss_sets(survive, problem.node_G), possible))
    draw = np.random.default_rng(0)
    drawn = (draw.choice(problem.gpus, survive.gpus, replace=False) for _ in range(affordable))
    return sorted({*(tuple(sorted(lost_G.tolist())) for lost_G in drawn), _greedy_worst(told, survive.gpus)})


def _greedy_worst(told: _Told, gpus: int) -> tuple[int, ...]:
    lost: tuple[int, ...] = ()
    for _ in range(gpus):
        others = [gpu for gpu in range(told.placement.gpus) if gpu not in lost]
        worst = max(others, key=lambda gpu: (_balance(told, (*lost, gpu)), -gpu))
        lost = tuple(sorted((*lost, worst)))
    return lost


def _balance(told: _Told, lost: tuple[int, ...]) -> float:
    """max/mean of the survivors: busiest GPUs (load over speed) summed over layers, over what perfect balance
    would be.
    """
    left = surviving(told.placement, lost)
    replicas_LE = left.replicas_LE(told.shares_LE.shape[1])
    value_LP = np.take_along_axis(told.shares_LE / np.maximum(replicas_LE, 1), left.expert_LP, axis=1)
    load_LG = value_LP.reshape(len(value_LP), left.gpus, -1).sum(axis=2)
    speed_G = np.delete(told.speed_G, list(lost))
    return float((load_LG / speed_G).max(axis=1).sum() / (load_LG.sum() / speed_G.sum()))


def _timed(
    even: Problem, placement: Placement, lost: tuple[int, ...], load: LoadProfile | None, max_over_mean: float
) -> Loss:
    left = replace(even, topology=even.topology.without(lost)) if lost else even
    seconds = cost(left, surviving(placement, lost), load).total_seconds
    return Loss(lost, max_over_mean, seconds, left.gpus * even.workload.tokens_per_rank / seconds)
