"""After a loss: what the GPUs that are left serve, beside what the whole machine served.

Before and after are under one replica rule and transport, those of the problem. Two things may happen to the
load: every GPU that is left brings as many tokens as before, and the requests of the lost ones are gone; or
those that are left bring the tokens of all. An expert that lost all its slots takes one of an expert that has
several (`refilled`), as an engine does that places experts anew; one that does not would stop. Nothing else
moves. GPUs that share the attention of a request are lost together.

Shapes: L layers, E experts, G GPUs, K losses.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost.lost import balance, losses_to_look_at, lost_experts_K, surviving_rows, told
from planner.cost.memory.ledger import ledger
from planner.cost.refill import missing_L, refilled
from planner.cost.served import Served, Step
from planner.cost.step import cost
from planner.cost.whole import whole_step
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import LeastRedundant, Problem, Survival, fewest_redundant

MOST_TIMED = 16  # losses whose step is predicted: a quarter the worst balanced, the others evenly spaced
TIMED_WORK = 250_000_000  # cells of traffic matrices that these predictions may take


@dataclass(frozen=True)
class Loss:
    """One loss. `same_batch`: every GPU left brings as many tokens as before; `all_tokens`: those of all, as
    far as the KV cache of the GPUs left holds their requests.
    """

    gpus: tuple[int, ...]
    lost_experts: int  # over layers: without a slot until they are read again
    same_batch: Served
    all_tokens: Served
    unheld_requests: int  # of those that decode at once, for which `all_tokens` has no room
    gain: str  # why the machine yields no less than before it lost GPUs; empty where it does yield less


@dataclass(frozen=True)
class AfterLoss:
    """What was found over the losses. `before` is the plan as it is served, with nothing lost.

    Balance was looked at for `losses` of `possible` sets (as if copies shared evenly: it finds the worst),
    seconds were predicted for `timed`.
    """

    survive: Survival
    held_out: bool
    replica_rule: str
    transport: str
    least_redundant: LeastRedundant
    possible: int
    losses: int
    timed: int
    before: Served
    error: str  # of the whole step's seconds on this GPU, or that it was not judged
    most_lost_experts: int  # over layers, of all losses looked at: they have no slot left
    worst_balance: Loss
    slowest: Loss  # fewest tokens a second, every GPU with its own batch
    mean_same_batch_tokens_per_s: float  # over evenly spaced losses, and so the next
    mean_all_tokens_per_s: float

    @property
    def exact(self) -> bool:
        """Whether no set of GPUs that may be lost was left out."""
        return self.losses == self.possible


def after_loss(
    problem: Problem,
    placement: Placement,
    survive: Survival,
    load: LoadProfile | None = None,
    engine: str | None = None,
) -> AfterLoss:
    """The worst and mean cost after the losses, on `load` (held out) or the problem's own.

    Infeasible where what a loss leaves has fewer slots than experts.
    """
    looked = told(problem, load or problem.load, placement)
    possible, sets = losses_to_look_at(problem, survive, looked)
    balance_K = np.array([balance(looked, lost) for lost in sets])
    most = int(np.clip(TIMED_WORK // (problem.gpus**2 * len(placement.layer_ids)), 4, MOST_TIMED))
    worst = np.argsort(-balance_K, kind="stable")[: most // 4].tolist()
    spaced = _spaced(len(sets), most)
    served = _Losses(problem, placement, load, engine)
    timed = {k: served.loss(sets[k]) for k in sorted({*worst, *spaced})}
    return AfterLoss(
        survive=survive,
        held_out=load is not None,
        replica_rule=problem.replica_rule,
        transport=problem.workload.transport,
        least_redundant=fewest_redundant(problem.model, problem.topology, survive),
        possible=possible,
        losses=len(sets),
        timed=len(timed),
        before=served.before,
        error=served.error,
        most_lost_experts=max(lost_experts_K(placement, problem.model.experts, sets)),
        worst_balance=timed[worst[0]],
        slowest=timed[min(timed, key=lambda k: (timed[k].same_batch.tokens_per_s, k))],
        mean_same_batch_tokens_per_s=float(np.mean([timed[k].same_batch.tokens_per_s for k in spaced])),
        mean_all_tokens_per_s=float(np.mean([timed[k].all_tokens.tokens_per_s for k in spaced])),
    )


def one_loss(
    problem: Problem, placement: Placement, lost: tuple[int, ...], load: LoadProfile | None = None
) -> tuple[Served, Loss]:
    """What is served before and after the loss of these GPUs, by no engine named."""
    served = _Losses(problem, placement, load, None)
    return served.before, served.loss(lost)


def surviving(problem: Problem, placement: Placement, lost: tuple[int, ...]) -> Placement:
    """The placement on the GPUs that are left, ranks closed up, experts without a slot given one."""
    left = surviving_rows(placement, lost)
    return replace(left, expert_LP=refilled(left.expert_LP, problem.shares_LE, left.gpus))


def _spaced(losses: int, most: int) -> list[int]:
    """All losses, or as many as the worst ones leave time for, evenly spaced."""
    count = losses if losses <= most else most - most // 4
    return sorted({int(k) for k in np.linspace(0, losses - 1, count)})


class _Losses:
    """One placement on one load: what it serves whole, and after each loss."""

    def __init__(
        self, problem: Problem, placement: Placement, load: LoadProfile | None, engine: str | None
    ) -> None:
        self._problem, self._placement, self._load, self._engine = problem, placement, load, engine
        tokens = problem.workload.tokens_per_rank
        self._whole = self._step(problem, placement)
        self.before = self._whole.served(problem.gpus * tokens)
        self.error = self._whole.whole.error

    def loss(self, lost: tuple[int, ...]) -> Loss:
        problem, gone = self._problem, _with_groups(self._problem, lost)
        # what is left promises nothing
        topology = problem.topology.without(gone)
        asked = replace(problem, topology=topology, survive=None, resplittable=False, kv_floor_bytes=0.0)
        rows, left = surviving_rows(self._placement, gone), surviving(problem, self._placement, gone)
        tokens = problem.workload.tokens_per_rank
        before = problem.gpus * tokens
        more, unheld = self._held(asked, -(-before // left.gpus))
        same, all_tokens = self._step(asked, left), self._step(more, left)
        every = min(before, left.gpus * more.workload.tokens_per_rank)
        return Loss(
            lost,
            int(missing_L(rows.expert_LP, problem.model.experts).sum()),
            same.served(left.gpus * tokens),
            all_tokens.served(every),
            unheld,
            self._whole.gain(same, left.gpus / problem.gpus) or self._whole.gain(all_tokens, 1.0),
        )

    def _held(self, asked: Problem, tokens: int) -> tuple[Problem, int]:
        """The question with so many tokens a rank, or as many as there is KV cache for, and the requests that
        have none. No fewer than before: those had theirs.
        """
        more = replace(asked, workload=replace(asked.workload, tokens_per_rank=tokens))
        shared, found = asked.workload.attention_tp, ledger(more, self._engine)
        if asked.workload.phase != "decode" or found.requests >= found.planned_requests:
            return more, 0
        fewer = max(found.requests // shared, asked.workload.tokens_per_rank)
        unheld = (tokens - fewer) * asked.gpus
        return replace(asked, workload=replace(asked.workload, tokens_per_rank=fewer)), unheld

    def _step(self, problem: Problem, placement: Placement) -> Step:
        found = cost(problem, placement, self._load)
        return Step(problem, found, whole_step(problem, found, self._engine))


def _with_groups(problem: Problem, lost: tuple[int, ...]) -> tuple[int, ...]:
    """With the GPUs that share the attention of their requests."""
    shared = problem.workload.attention_tp
    groups = {gpu // shared for gpu in lost}
    return tuple(gpu for gpu in range(problem.gpus) if gpu // shared in groups)
