"""The busiest place: what the links of some GPU or unit carry at least.

It is looked at for experts that all sources find at the same places.

Shapes: L layers, E experts, G GPUs (as sources and destinations), R resources.
"""

import numpy as np

from planner.bounds.tariffs import ALIKE, forwarder_GU
from planner.cost import Floats, inclusion_E, units
from planner.load import LoadProfile
from planner.problem import Problem


def to_busiest_place_L(problem: Problem, load: LoadProfile, peak_load_L: Floats) -> Floats:
    """Messages from every source to some place, at least: to a GPU, or to a unit for transport `node`; for
    `slot` over the GPU's speed.

    Experts that all sources find at the same places are looked at: all of them where the rule is so, else
    those without a replica. A place with m of a token's picks gets 1 - (1 - m / k)^k messages at least, and
    some place has no fewer picks than the mean. A trace does not say so.
    """
    alike, transport = problem.replica_rule in ALIKE, problem.workload.transport
    if transport == "slot":
        return peak_load_L / problem.gpus if alike else np.zeros(len(peak_load_L))
    places = problem.gpus if transport == "rank" else int(units(problem).max()) + 1
    messages_L = np.zeros(len(peak_load_L))
    for layer, share_E in enumerate(load.shares_LE):
        if load.trace is None or not load.trace.recorded_L[layer]:
            chance_E = np.sort(inclusion_E(share_E, problem.model.top_k))[::-1]
            picks, found = float(chance_E.sum()), float(chance_E[0 if alike else problem.redundant :].sum())
            messages_L[layer] = problem.workload.tokens_per_rank * (1 - (1 - found / places / picks) ** picks)
    return messages_L


def seconds_per_byte(problem: Problem, speed_G: Floats, rate_R: Floats, *, back: bool) -> float:
    """Seconds of the slowest link where every source sends one byte to the same place; to the place where it
    takes least.
    """
    unit_G, transport = units(problem), problem.workload.transport
    to_unit_GU = forwarder_GU(unit_G)
    seconds = []
    for place in range(to_unit_GU.shape[1] if transport == "node" else problem.gpus):
        bytes_GG = np.zeros((problem.gpus, problem.gpus))
        if transport == "node":
            outside = np.flatnonzero(unit_G != place)
            bytes_GG[outside, to_unit_GU[outside, place]] = 1.0
        else:
            bytes_GG[:, place] = speed_G[place] if transport == "slot" else 1.0
        bytes_R = problem.topology.resource_bytes(bytes_GG.T if back else bytes_GG)
        seconds.append((bytes_R / rate_R).max(initial=0.0))
    return float(min(seconds))
