"""Lower bounds on the bytes of dispatch and combine, as seconds per layer. Nothing here looks at a placement.

They hold for every placement. The slowest link is at least as slow as all links of its kind together: their
bytes over the sum of their rates. Those bytes are a sum over messages, each at the price of its route
(`tariffs`). A second bound is what the links of the busiest GPU or unit carry.

Shapes: L layers, E experts, G GPUs, R resources, X arguments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.bounds.busiest import seconds_per_byte, to_busiest_place_L
from planner.bounds.picks import messages_E, messages_of_trace_XE
from planner.bounds.tariffs import MOST_ENTRIES, Tariff, by_rounds, tariffs
from planner.cost import Floats, PhaseConstants, Routing, efficiency_R, messages_GG, units
from planner.load import LoadProfile
from planner.problem import Problem

# beyond it the links of the busiest place are not looked at: it takes a traffic matrix for each place
MOST_GPUS = 256
ROUNDING = 1e-12  # of seconds: two arguments that come to the same
BUSIEST = {"slot": "busiest GPU", "rank": "busiest GPU", "node": "busiest unit"}

Weights = list[tuple[Floats, Floats]]
Argument = tuple[str, Floats]  # its name, and the seconds_L that no placement is below


@dataclass(frozen=True, eq=False)
class PhaseBound:
    """Per layer: seconds that bytes take at least, start-up not counted, and which argument says so."""

    seconds_L: Floats
    reason_L: tuple[str, ...]


class Least(NamedTuple):
    """What both phases go by: messages of each layer (`least_messages`), and that some GPU gets at least so
    many assignments over its speed.
    """

    weights: Weights
    peak_load_L: Floats
    speed_G: Floats


def strongest(found: Sequence[Argument]) -> PhaseBound:
    """The largest in each layer; ties, up to rounding, to the first."""
    seconds_XL = np.array([seconds_L for _, seconds_L in found])
    most_L = seconds_XL.max(axis=0)
    best_L = (seconds_XL >= most_L * (1 - ROUNDING)).argmax(axis=0)
    return PhaseBound(most_L, tuple(found[best][0] for best in best_L.tolist()))


def phase_bound(
    problem: Problem,
    load: LoadProfile,
    least: Least,
    constants: PhaseConstants,
    message_bytes: float,
    *,
    back: bool,
) -> PhaseBound:
    """The bound for dispatch, or for combine where `back`."""
    rate_R = problem.topology.capacity_R * efficiency_R(problem, constants)
    layers, transport = len(least.peak_load_L), problem.workload.transport
    if transport == "allgather":
        return _fixed_volume(problem, rate_R, message_bytes, layers, back=back)
    priced = tariffs(problem, rate_R, back=back)
    found = [("none", np.zeros(layers)), *_all_links(problem, load, least.weights, priced, message_bytes)]
    if 1 < problem.gpus <= MOST_GPUS:
        bytes_L = to_busiest_place_L(problem, load, least.peak_load_L) * message_bytes
        seconds_L = bytes_L * seconds_per_byte(problem, least.speed_G, rate_R, back=back)
        found.append((BUSIEST[transport], seconds_L))
    return strongest(found)


def _all_links(
    problem: Problem, load: LoadProfile, weights: Weights, priced: list[Tariff], message_bytes: float
) -> list[Argument]:
    """What all links of a kind carry together, for each kind."""

    def argument(tariff: Tariff, totals: list[float]) -> Argument:
        seconds_L = np.array(totals) * problem.workload.tokens_per_rank * message_bytes
        return f"all {tariff.name}", seconds_L

    found = [
        argument(tariff, [tariff.least_total(of_layer, problem.redundant) for of_layer in weights])
        for tariff in priced
    ]
    if found and _goes_round(problem):  # for the largest: the others would hardly become it
        tariff = priced[int(np.argmax([seconds_L.sum() for _, seconds_L in found]))]
        layers = zip(load.shares_LE, weights, strict=True)
        totals = [by_rounds(problem, share_E, tariff, of_layer) for share_E, of_layer in layers]
        found.append(argument(tariff, totals))
    return found


def _goes_round(problem: Problem) -> bool:
    """Whether ranks go round the replicas, with few enough entries to follow."""
    entries = problem.workload.tokens_per_rank * problem.model.top_k
    slots = problem.workload.transport == "slot"
    return problem.replica_rule == "round-robin" and slots and entries <= MOST_ENTRIES


def least_messages(problem: Problem, load: LoadProfile) -> Weights:
    """For every layer the messages a token on account of each expert, at least: to its GPU, and to its unit
    before.
    """
    top_k, experts, transport = problem.model.top_k, problem.model.experts, problem.workload.transport
    none_E = np.zeros(experts)
    if transport == "slot":
        return [(top_k * share_E, none_E) for share_E in load.shares_LE]
    slots_at_place: tuple[int, ...] = (problem.slots_per_gpu,)
    if transport == "node":
        slots_at_place += (problem.slots_per_gpu * int(np.bincount(units(problem)).max()),)
    found = []
    for layer, share_E in enumerate(load.shares_LE):
        if load.trace is not None and load.trace.recorded_L[layer]:
            least_XE = messages_of_trace_XE(load.trace.experts_LTK[layer], experts, slots_at_place)
        else:
            least_XE = [messages_E(share_E, top_k, slots) for slots in slots_at_place]
        found.append((least_XE[0], least_XE[1] if transport == "node" else none_E))
    return found


def _fixed_volume(
    problem: Problem, rate_R: Floats, message_bytes: float, layers: int, *, back: bool
) -> PhaseBound:
    nothing = Routing(np.empty(0), np.empty((1, 0)), np.empty(0, dtype=np.int64))
    sent_GG = messages_GG(problem, nothing) * message_bytes
    bytes_R = problem.topology.resource_bytes(sent_GG.T if back else sent_GG)
    seconds = float((bytes_R / rate_R).max(initial=0.0))
    return PhaseBound(np.full(layers, seconds), ("fixed volume",) * layers)
