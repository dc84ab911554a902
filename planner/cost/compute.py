"""Expert compute: seconds of each GPU, by its assignments or by the weights it reads, whichever takes longer.

Shapes: S source ranks (1 where all behave alike, else G), P slots, G GPUs, C slots that may be missed.
"""

from typing import NamedTuple

import numpy as np

from planner.cost.constants import constants_of
from planner.cost.routing import Floats, Routing, inclusion_E
from planner.problem import Problem

NEVER_MISSED = 40.0  # expected hits of a slot in a step: the chance that none comes is below exp(-40)


def touched_slots_G(problem: Problem, routing: Routing) -> Floats:
    """Expected slots of each GPU that at least one token of a step reaches, whose weights are read.

    A small decode step waits for them.
    """
    return np.asarray(touched_P(problem, routing).reshape(problem.gpus, -1).sum(axis=1))


def touched_P(problem: Problem, routing: Routing) -> Floats:
    """Chance of each slot that at least one token of a step reaches it.

    Each token of source s reaches slot p with chance π_e · share[s,p],
    by itself: a replica is touched by the share of tokens that the rule gives it.
    """
    tokens = problem.workload.tokens_per_rank * (problem.gpus if len(routing.share_SP) == 1 else 1)
    chance_P = inclusion_E(routing.share_E, problem.model.top_k)[routing.expert_P]
    missed_P = np.zeros(len(chance_P))
    cold = np.flatnonzero(tokens * chance_P * routing.share_SP.sum(axis=0) < NEVER_MISSED)
    reached_SC = np.minimum(chance_P[cold] * routing.share_SP[:, cold], 1.0)
    with np.errstate(divide="ignore"):  # an expert that every token chooses is never missed
        missed_P[cold] = np.exp(tokens * np.log1p(-reached_SC).sum(axis=0))
    return np.asarray(1 - missed_P)


class ComputeRates(NamedTuple):
    """Seconds of each GPU's expert compute: what it takes without any work, for the operations of one
    assignment, for the weights of one touched slot, and for the vector of one assignment.
    """

    fixed_G: Floats
    operations_G: Floats
    weights_G: Floats
    row_G: Floats


def compute_rates(problem: Problem) -> ComputeRates:
    """By the constants of each GPU's model.

    A GPU's speed divides all but the fixed part, the host's. The vectors that enter: one an assignment
    (`slot`), every token of the group whatever the load (`allgather`), else a token's own once for all its
    experts there. The last as often as under an even load, so that they grow with the assignments alone.
    """
    model, topology, gpus = problem.model, problem.topology, problem.gpus
    constants_M, model_G, speed_G = constants_of(problem).compute_M, topology.model_G, topology.speed_G
    pairs = zip(topology.models, constants_M, strict=True)
    flops_M = np.array([gpu.peak_flops_per_s(one.rate) * one.flops_efficiency for gpu, one in pairs])
    memory_M = np.array([one.memory_efficiency for one in constants_M])
    row_M = np.array([one.seconds_per_value for one in constants_M]) * model.dispatch_width
    fixed_G = np.array([one.fixed_seconds for one in constants_M])[model_G]
    row_G, rows = row_M[model_G] / speed_G, 1.0
    if problem.workload.transport == "allgather":
        fixed_G, rows = fixed_G + row_G * problem.workload.tokens_per_rank * gpus, 0.0
    elif problem.workload.transport != "slot":
        rows = (1 - (1 - 1 / gpus) ** model.top_k) * gpus / model.top_k
    return ComputeRates(
        fixed_G,
        model.flops_per_assignment / flops_M[model_G] / speed_G,
        model.expert_bytes / (topology.memory_bytes_per_s_G * memory_M[model_G]) / speed_G,
        row_G * rows,
    )


def compute_seconds_G(problem: Problem, load_G: Floats, touched_G: Floats) -> Floats:
    """Expert compute of each GPU for this many assignments and touched slots."""
    rates = compute_rates(problem)
    work_G = np.maximum(load_G * rates.operations_G, touched_G * rates.weights_G)
    return np.asarray(rates.fixed_G + work_G + load_G * rates.row_G)
