"""Exchanges: what a layer's dispatch and combine send between GPUs, hop by hop, in bytes and seconds.

An all-to-all that knows nothing of tokens can send each of them: what a benchmark is given. Expectations, not
one draw.

Shapes: L placed layers, G GPUs, R resources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.cost.constants import PhaseConstants, constants_of
from planner.cost.phase import Phase
from planner.cost.routing import Floats, Routing
from planner.cost.traffic import message_bytes, messages_GG, units
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule

STRAIGHT, BETWEEN, WITHIN = "", "between", "within"
TWO_HOPS = ("node", "allgather")  # transports whose messages cross units first, and spread inside them then


@dataclass(frozen=True, eq=False)
class Exchange:
    """One all-to-all: `bytes_GG` from GPU (row) to GPU (column); the diagonal stays where it is.

    `hop` is empty where messages go straight to their GPU, else `between` units (nodes, NVLink domains) or
    `within` them. `seconds` are of this hop alone; `phase_seconds` of all hops, as a step is predicted.
    """

    phase: str  # dispatch, combine
    hop: str
    bytes_GG: Floats
    seconds: float
    bottleneck: str
    phase_seconds: float


def exchanges_L(problem: Problem, placement: Placement, rows: Sequence[int]) -> list[tuple[Exchange, ...]]:
    """The exchanges of each of these rows of the placement, in the order in which a layer makes them."""
    constants, sizes = constants_of(problem), message_bytes(problem)
    shares = list(find_rule(problem.replica_rule)(placement, problem.situation()))
    load, trace = problem.load, problem.load.trace
    found = []
    for row in rows:
        traced_TK = trace.experts_LTK[row] if trace is not None and trace.recorded_L[row] else None
        routing = Routing(load.shares_LE[row], shares[row], placement.expert_LP[row], traced_TK)
        sent_GG = np.array(messages_GG(problem, routing))
        there = _exchanges(problem, "dispatch", constants.dispatch, sizes[0], sent_GG)
        back = _exchanges(problem, "combine", constants.combine, sizes[1], sent_GG.T)
        found.append((*there, *back))
    return found


def _exchanges(
    problem: Problem, phase: str, constants: PhaseConstants, size: float, sent_GG: Floats
) -> Iterator[Exchange]:
    """Of one phase. A combine makes the hops of its dispatch backwards."""
    law, topology = Phase(problem, constants, size), problem.topology
    whole_seconds, _ = law.seconds(topology.resource_bytes(sent_GG))
    hops = _hops(problem, sent_GG)
    for hop, hop_GG in hops if phase == "dispatch" else reversed(hops):
        seconds, bottleneck = law.seconds(topology.resource_bytes(hop_GG))
        yield Exchange(phase, hop, hop_GG * size, seconds, bottleneck, whole_seconds)


def _hops(problem: Problem, sent_GG: Floats) -> list[tuple[str, Floats]]:
    """The messages apart by hop: a second hop never leaves its unit, and a first one always does."""
    if problem.workload.transport not in TWO_HOPS:
        return [(STRAIGHT, sent_GG)]
    unit_G = units(problem)
    apart_GG = unit_G[:, None] != unit_G[None, :]
    hops = [(BETWEEN, np.where(apart_GG, sent_GG, 0.0)), (WITHIN, np.where(apart_GG, 0.0, sent_GG))]
    sending = [(hop, hop_GG) for hop, hop_GG in hops if hop_GG.any()]
    return sending if len(sending) > 1 else [(STRAIGHT, sent_GG)]
