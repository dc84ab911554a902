"""Cost: predicted seconds of each layer of a placement, under the problem's replica rule, transport and topology. Expectations, not one draw.

Shapes: L placed layers, G GPUs, P slots, R resources.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.constants import COMBINE, COMPUTE, DISPATCH, PhaseConstants
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule
from planner.traffic import Floats, Routing, assignments_SP, message_bytes, messages_GG


@dataclass(frozen=True, eq=False)
class Cost:
    """What one placement costs on one load. Seconds are per layer and step; loads are assignments per step."""

    layer_ids: tuple[int, ...]
    load_LG: Floats
    dispatch_seconds_L: Floats
    compute_seconds_L: Floats
    combine_seconds_L: Floats
    bottleneck_L: tuple[str, ...]  # the resource that dispatch waits for, per layer
    cross_node_L: Floats  # share of assignments whose slot is on another node than their token
    silent_L: npt.NDArray[np.bool_]  # layers without a single assignment: taken as even, and no part of any balance figure

    @property
    def max_over_mean_L(self) -> Floats:
        """Load of the busiest GPU over the mean; 1 is perfect."""
        return np.asarray(self.load_LG.max(axis=1) / self.load_LG.mean(axis=1))

    @property
    def balancedness_L(self) -> Floats:
        return 1.0 / self.max_over_mean_L

    @property
    def max_over_mean(self) -> float:
        """Sum over layers with a signal of the busiest GPU's load over the sum of means: what time follows."""
        load_LG = self.load_LG if self.silent_L.all() else self.load_LG[~self.silent_L]
        return float(load_LG.max(axis=1).sum() / load_LG.mean(axis=1).sum())

    @property
    def layer_seconds_L(self) -> Floats:
        return self.dispatch_seconds_L + self.compute_seconds_L + self.combine_seconds_L

    @property
    def total_seconds(self) -> float:
        return float(self.layer_seconds_L.sum())

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
    load = load or problem.load
    layers = len(placement.layer_ids)
    load_LG = np.empty((layers, problem.gpus))
    dispatch_L, compute_L, combine_L = np.empty(layers), np.empty(layers), np.empty(layers)
    cross_node_L = np.empty(layers)
    bottlenecks = []
    dispatch_bytes, combine_bytes = message_bytes(problem)
    rule = find_rule(problem.replica_rule)
    shares_LE = load.shares_LE
    dispatch_phase = _Phase(problem, DISPATCH[problem.workload.transport], dispatch_bytes)
    combine_phase = _Phase(problem, COMBINE[problem.workload.transport], combine_bytes)
    traced_L = load.trace.recorded_L if load.trace is not None else np.zeros(layers, dtype=bool)
    for layer, share_SP in enumerate(rule(placement, problem.situation(load))):
        traced_TK = load.trace.experts_LTK[layer] if load.trace is not None and traced_L[layer] else None
        routing = Routing(shares_LE[layer], share_SP, placement.expert_LP[layer], traced_TK)
        sent_SP, sent_GG = assignments_SP(problem, routing), messages_GG(problem, routing)
        received_P = sent_SP.sum(axis=0) * (problem.gpus if len(sent_SP) == 1 else 1)
        load_LG[layer] = received_P.reshape(problem.gpus, -1).sum(axis=1)
        there_R, back_R = problem.topology.there_and_back(sent_GG)
        dispatch_L[layer], bottleneck = dispatch_phase.seconds(there_R)
        combine_L[layer], _ = combine_phase.seconds(back_R)
        compute_L[layer] = _compute_seconds(problem, load_LG[layer], received_P)
        cross_node_L[layer] = _cross_node_share(problem, sent_SP)
        bottlenecks.append(bottleneck)
    return Cost(placement.layer_ids, load_LG, dispatch_L, compute_L, combine_L, tuple(bottlenecks), cross_node_L, np.asarray(load.total_LE.sum(axis=1) == 0))


class _Phase:
    """One direction of the exchange: what does not depend on the layer."""

    def __init__(self, problem: Problem, constants: PhaseConstants, message_bytes: float) -> None:
        self._resources = problem.topology.resources
        self._start_seconds = constants.start_seconds(problem.gpus)
        self._messages_per_s_R = problem.topology.capacity_R * _efficiency_R(problem, constants) / message_bytes

    def seconds(self, messages_R: Floats) -> tuple[float, str]:
        """Seconds of so many messages over each resource, and the one that is waited for."""
        if not len(messages_R) or not messages_R.max() > 0:
            return self._start_seconds, "start-up"
        seconds_R = messages_R / self._messages_per_s_R
        slowest = int(seconds_R.argmax())
        return self._start_seconds + float(seconds_R[slowest]), self._resources[slowest].name


def _efficiency_R(problem: Problem, constants: PhaseConstants) -> Floats:
    """A measured rate is what messages reach already; any other is a line rate, of which they reach a share."""
    return np.array([1.0 if r.rate.evidence.kind == "measured" else constants.efficiency(r.tier) for r in problem.topology.resources])


def _compute_seconds(problem: Problem, load_G: Floats, received_P: npt.NDArray[np.float64]) -> float:
    touched_G = -np.expm1(-received_P.reshape(problem.gpus, -1)).sum(axis=1)  # slots with at least one token in a step
    return float(compute_seconds_G(problem, load_G, touched_G).max())


def compute_seconds_G(problem: Problem, load_G: Floats, touched_G: Floats) -> Floats:
    """Expert compute of each GPU for this many assignments and touched slots."""
    dtype = "fp8" if problem.model.weight_dtype == "fp8" else "bf16"
    peak_G, bandwidth_G = problem.topology.peak_flops_per_s_G(dtype), problem.topology.memory_bytes_per_s_G
    compute_G = load_G * problem.model.flops_per_assignment / (peak_G * COMPUTE.flops_efficiency)
    memory_G = touched_G * problem.model.expert_bytes / (bandwidth_G * COMPUTE.memory_efficiency)
    return COMPUTE.fixed_seconds + np.maximum(compute_G, memory_G)


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
