"""A step: predicted seconds of each layer of a placement. Expectations, not one draw.

They follow from the problem's replica rule, transport and topology.

Shapes: L placed layers, G GPUs, P slots, R resources, S source ranks (1 where all behave alike, else G).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from planner.cost.compute import compute_seconds_G, touched_slots_G
from planner.cost.constants import constants_of
from planner.cost.phase import Phase
from planner.cost.priced import Cost
from planner.cost.routing import Floats, Routing, assignments_SP
from planner.cost.traffic import message_bytes, messages_GG
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import FOLLOW_LOAD, find_rule


def cost(problem: Problem, placement: Placement, load: LoadProfile | None = None) -> Cost:
    """The cost of `placement` on `load`, the problem's own where none is given.

    The judge must have passed it.
    """
    return costs(problem, placement, (load or problem.load,))[0]


def costs(problem: Problem, placement: Placement, loads: Sequence[LoadProfile]) -> list[Cost]:
    """The cost on each load; what replicas share is worked out once where it follows from the placement."""
    if problem.replica_rule in FOLLOW_LOAD and len(loads) > 1:
        return [costs(problem, placement, (load,))[0] for load in loads]
    constants = constants_of(problem)
    dispatch_bytes, combine_bytes = message_bytes(problem)
    phases = (
        Phase(problem, constants.dispatch, dispatch_bytes),
        Phase(problem, constants.combine, combine_bytes),
    )
    rows: list[list[_Row]] = [[] for _ in loads]
    for routings in _routings(problem, placement, loads):
        for routing, found in zip(routings, rows, strict=True):
            found.append(_row(problem, routing, phases))
    return [_put_together(problem, placement, load, found) for load, found in zip(loads, rows, strict=True)]


def _routings(
    problem: Problem, placement: Placement, loads: Sequence[LoadProfile]
) -> Iterator[list[Routing]]:
    """For every layer its routing on each load."""
    shares = [load.shares_LE for load in loads]
    traces = [load.trace for load in loads]
    for layer, share_SP in enumerate(find_rule(problem.replica_rule)(placement, problem.situation(loads[0]))):
        traced = [t.experts_LTK[layer] if t is not None and t.recorded_L[layer] else None for t in traces]
        yield [
            Routing(shares_LE[layer], share_SP, placement.expert_LP[layer], traced_TK)
            for shares_LE, traced_TK in zip(shares, traced, strict=True)
        ]


class _Row(NamedTuple):
    """One layer of a cost."""

    load_G: Floats
    dispatch_seconds: float
    compute_seconds: float
    combine_seconds: float
    bottleneck: str
    cross_node: float


def _row(problem: Problem, routing: Routing, phases: tuple[Phase, Phase]) -> _Row:
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


def _put_together(problem: Problem, placement: Placement, load: LoadProfile, rows: list[_Row]) -> Cost:
    load_G, dispatch, compute, combine, bottlenecks, cross_node = zip(*rows, strict=True)
    return Cost(
        layer_ids=placement.layer_ids,
        load_LG=np.array(load_G),
        dispatch_seconds_L=np.array(dispatch),
        compute_seconds_L=np.array(compute),
        combine_seconds_L=np.array(combine),
        bottleneck_L=bottlenecks,
        cross_node_L=np.array(cross_node),
        silent_L=np.asarray(load.total_LE.sum(axis=1) == 0),
        speed_G=problem.speed_G,
    )


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
