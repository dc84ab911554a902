"""Cost: predicted seconds of each layer of a placement, under the problem's replica rule, transport and topology. Expectations, not one draw.

Shapes: L placed layers, G GPUs, P slots, R resources.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.cost.constants import COMBINE, COMPUTE, DISPATCH, PhaseConstants
from planner.cost.traffic import Floats, Routing, assignments_SP, inclusion_E, message_bytes, messages_GG
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule

FOLLOW_LOAD = ("lp", "round-robin")  # rules whose shares depend on the load, not on the placement alone
NEVER_MISSED = 40.0  # expected hits of a slot in a step: the chance that none comes is below exp(-40)


class StepParts:
    """Seconds of the three parts of a step, per layer, predicted or bounded: what they come to together."""

    dispatch_seconds_L: Floats
    compute_seconds_L: Floats
    combine_seconds_L: Floats

    @property
    def layer_seconds_L(self) -> Floats:
        return self.dispatch_seconds_L + self.compute_seconds_L + self.combine_seconds_L

    @property
    def total_seconds(self) -> float:
        return float(self.layer_seconds_L.sum())


@dataclass(frozen=True, eq=False)
class Cost(StepParts):
    """What one placement costs on one load. Seconds are per layer and step; loads are assignments per step."""

    layer_ids: tuple[int, ...]
    load_LG: Floats
    dispatch_seconds_L: Floats
    compute_seconds_L: Floats
    combine_seconds_L: Floats
    bottleneck_L: tuple[str, ...]  # the resource that dispatch waits for, per layer
    cross_node_L: Floats  # share of assignments whose slot is on another node than their token
    silent_L: npt.NDArray[
        np.bool_
    ]  # layers without a single assignment: taken as even, and no part of any balance figure
    speed_G: Floats | None = None  # beside the fastest GPU; None where all are alike

    @property
    def busy_LG(self) -> Floats:
        """Load that would keep the fastest GPU as busy: a GPU's load over its speed."""
        return self.load_LG if self.speed_G is None else np.asarray(self.load_LG / self.speed_G)

    @property
    def fair_L(self) -> Floats:
        """What every GPU's `busy_LG` would be in perfect balance: the mean, where all are alike."""
        return np.asarray(
            self.load_LG.mean(axis=1)
            if self.speed_G is None
            else self.load_LG.sum(axis=1) / self.speed_G.sum()
        )

    @property
    def max_over_mean_L(self) -> Floats:
        """The busiest GPU over perfect balance; 1 is perfect."""
        return np.asarray(self.busy_LG.max(axis=1) / self.fair_L)

    @property
    def balancedness_L(self) -> Floats:
        return 1.0 / self.max_over_mean_L

    @property
    def max_over_mean(self) -> float:
        """Sum over layers with a signal of the busiest GPU over the sum of perfect balances: what time follows."""
        told_L = np.ones_like(self.silent_L) if self.silent_L.all() else ~self.silent_L
        return float(self.busy_LG[told_L].max(axis=1).sum() / self.fair_L[told_L].sum())

    @property
    def cross_node_share(self) -> float:
        return float(self.cross_node_L.mean())

    @property
    def bottleneck(self) -> str:
        """The resource that costs the most dispatch time over all layers; ties by name."""
        seconds = dict.fromkeys(sorted(set(self.bottleneck_L)), 0.0)
        for name, layer_seconds in zip(self.bottleneck_L, self.dispatch_seconds_L, strict=True):
            seconds[name] += float(layer_seconds)
        return max(seconds, key=lambda name: seconds[name])


def cost(problem: Problem, placement: Placement, load: LoadProfile | None = None) -> Cost:
    """The cost of `placement` on `load` (the problem's own where none is given). The placement must have passed the judge."""
    return costs(problem, placement, (load or problem.load,))[0]


def costs(problem: Problem, placement: Placement, loads: Sequence[LoadProfile]) -> list[Cost]:
    """The cost on each load; what replicas share is worked out once where it follows from the placement."""
    if problem.replica_rule in FOLLOW_LOAD and len(loads) > 1:
        return [costs(problem, placement, (load,))[0] for load in loads]
    transport = problem.workload.transport
    dispatch_bytes, combine_bytes = message_bytes(problem)
    phases = (
        _Phase(problem, DISPATCH[transport], dispatch_bytes),
        _Phase(problem, COMBINE[transport], combine_bytes),
    )
    shares = [load.shares_LE for load in loads]
    rows: list[list[_Row]] = [[] for _ in loads]
    for layer, share_SP in enumerate(find_rule(problem.replica_rule)(placement, problem.situation(loads[0]))):
        for load, shares_LE, found in zip(loads, shares, rows, strict=True):
            traced_TK = (
                load.trace.experts_LTK[layer]
                if load.trace is not None and load.trace.recorded_L[layer]
                else None
            )
            found.append(
                _row(
                    problem,
                    Routing(shares_LE[layer], share_SP, placement.expert_LP[layer], traced_TK),
                    phases,
                )
            )
    return [_put_together(problem, placement, load, found) for load, found in zip(loads, rows, strict=True)]


class _Row(NamedTuple):
    """One layer of a cost."""

    load_G: Floats
    dispatch_seconds: float
    compute_seconds: float
    combine_seconds: float
    bottleneck: str
    cross_node: float


def _row(problem: Problem, routing: Routing, phases: "tuple[_Phase, _Phase]") -> _Row:
    sent_SP = assignments_SP(problem, routing)
    sent_GG = messages_GG(problem, routing, sent_SP)
    received_P = sent_SP.sum(axis=0) * (problem.gpus if len(sent_SP) == 1 else 1)
    load_G = received_P.reshape(problem.gpus, -1).sum(axis=1)
    (dispatch, bottleneck), (combine, _) = (
        phase.seconds(sent_R)
        for phase, sent_R in zip(phases, problem.topology.there_and_back(sent_GG), strict=True)
    )
    compute = float(compute_seconds_G(problem, load_G, touched_slots_G(problem, routing)).max())
    return _Row(load_G, dispatch, compute, combine, bottleneck, _cross_node_share(problem, sent_SP))


def _put_together(problem: Problem, placement: Placement, load: LoadProfile, rows: "list[_Row]") -> Cost:
    load_G, dispatch, compute, combine, bottlenecks, cross_node = zip(*rows, strict=True)
    silent_L = np.asarray(load.total_LE.sum(axis=1) == 0)
    seconds_3L = np.array([dispatch, compute, combine])
    return Cost(
        placement.layer_ids,
        np.array(load_G),
        seconds_3L[0],
        seconds_3L[1],
        seconds_3L[2],
        bottlenecks,
        np.array(cross_node),
        silent_L,
        problem.speed_G,
    )


class _Phase:
    """One direction of the exchange: what does not depend on the layer."""

    def __init__(self, problem: Problem, constants: PhaseConstants, message_bytes: float) -> None:
        self._resources = problem.topology.resources
        self._start_seconds = constants.start_seconds(problem.gpus)
        self._messages_per_s_R = (
            problem.topology.capacity_R * efficiency_R(problem, constants) / message_bytes
        )

    def seconds(self, messages_R: Floats) -> tuple[float, str]:
        """Seconds of so many messages over each resource, and the one that is waited for."""
        if not len(messages_R) or not messages_R.max() > 0:
            return self._start_seconds, "start-up"
        seconds_R = messages_R / self._messages_per_s_R
        slowest = int(seconds_R.argmax())
        return self._start_seconds + float(seconds_R[slowest]), self._resources[slowest].name


def efficiency_R(problem: Problem, constants: PhaseConstants) -> Floats:
    """A measured rate is what messages reach already; any other is a line rate, of which they reach a share."""
    reached = {tier: constants.efficiency(tier) for tier in {r.tier for r in problem.topology.resources}}
    return np.array(
        [1.0 if r.rate.evidence.kind == "measured" else reached[r.tier] for r in problem.topology.resources]
    )


def touched_slots_G(problem: Problem, routing: Routing) -> Floats:
    """Expected slots of each GPU that at least one token of a step reaches, whose weights are read: what a small decode step waits for.

    Each token of source s reaches slot p with chance π_e · share[s,p], by itself: a replica is touched by the share of tokens that the rule gives it.
    """
    tokens = problem.workload.tokens_per_rank * (problem.gpus if len(routing.share_SP) == 1 else 1)
    chance_P = inclusion_E(routing.share_E, problem.model.top_k)[routing.expert_P]
    missed_P = np.zeros(len(chance_P))
    cold = np.flatnonzero(tokens * chance_P * routing.share_SP.sum(axis=0) < NEVER_MISSED)
    with np.errstate(divide="ignore"):  # an expert that every token chooses is never missed
        missed_P[cold] = np.exp(
            tokens * np.log1p(-np.minimum(chance_P[cold] * routing.share_SP[:, cold], 1.0)).sum(axis=0)
        )
    return np.asarray((1 - missed_P).reshape(problem.gpus, -1).sum(axis=1))


def compute_seconds_G(problem: Problem, load_G: Floats, touched_G: Floats) -> Floats:
    """Expert compute of each GPU for this many assignments and touched slots. A GPU's speed divides all but the fixed part, which is the host's."""
    dtype = "fp8" if problem.model.weight_dtype == "fp8" else "bf16"
    peak_G, bandwidth_G = problem.topology.peak_flops_per_s_G(dtype), problem.topology.memory_bytes_per_s_G
    compute_G = load_G * problem.model.flops_per_assignment / (peak_G * COMPUTE.flops_efficiency)
    memory_G = touched_G * problem.model.expert_bytes / (bandwidth_G * COMPUTE.memory_efficiency)
    return COMPUTE.fixed_seconds + np.maximum(compute_G, memory_G) / problem.topology.speed_G


def _cross_node_share(problem: Problem, sent_SP: Floats) -> float:
    node_G = problem.node_G
    if len(sent_SP) == 1:
        node_P = np.repeat(node_G, problem.slots_per_gpu)
        sources_on_N = np.bincount(node_G)
        return float((sent_SP[0] * (1 - sources_on_N[node_P] / problem.gpus)).sum() / sent_SP.sum())
    starts_N = np.flatnonzero(np.diff(node_G, prepend=-1))
    sent_NP = np.add.reduceat(sent_SP, starts_N, axis=0)
    sent_NN = np.add.reduceat(sent_NP, starts_N * problem.slots_per_gpu, axis=1)
    away_NN = node_G[starts_N][:, None] != node_G[starts_N]
    return float(sent_NN[away_NN].sum() / sent_NN.sum())
