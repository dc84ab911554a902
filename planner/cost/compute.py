"""Expert compute: seconds of each GPU, by its assignments or by the weights it reads, whichever takes longer.

Shapes: S source ranks (1 where all behave alike, else G), P slots, G GPUs, C slots that may be missed.
"""

import numpy as np

from planner.cost.constants import constants_of
from planner.cost.routing import Floats, Routing, inclusion_E
from planner.problem import Problem

NEVER_MISSED = 40.0  # expected hits of a slot in a step: the chance that none comes is below exp(-40)


def touched_slots_G(problem: Problem, routing: Routing) -> Floats:
    """Expected slots of each GPU that at least one token of a step reaches, whose weights are read.

    A small decode step waits for them. Each token of source s reaches slot p with chance π_e · share[s,p],
    by itself: a replica is touched by the share of tokens that the rule gives it.
    """
    tokens = problem.workload.tokens_per_rank * (problem.gpus if len(routing.share_SP) == 1 else 1)
    chance_P = inclusion_E(routing.share_E, problem.model.top_k)[routing.expert_P]
    missed_P = np.zeros(len(chance_P))
    cold = np.flatnonzero(tokens * chance_P * routing.share_SP.sum(axis=0) < NEVER_MISSED)
    reached_SC = np.minimum(chance_P[cold] * routing.share_SP[:, cold], 1.0)
    with np.errstate(divide="ignore"):  # an expert that every token chooses is never missed
        missed_P[cold] = np.exp(tokens * np.log1p(-reached_SC).sum(axis=0))
    return np.asarray((1 - missed_P).reshape(problem.gpus, -1).sum(axis=1))


def compute_seconds_G(problem: Problem, load_G: Floats, touched_G: Floats) -> Floats:
    """Expert compute of each GPU for this many assignments and touched slots.

    A GPU's speed divides all but the fixed part, which is the host's. Each GPU model has its own constants.
    """
    model, topology = problem.model, problem.topology
    constants_M, model_G = constants_of(problem).compute_M, topology.model_G
    fixed_M, flops_M, memory_M, value_M = np.array(
        [
            (one.fixed_seconds, one.flops_efficiency, one.memory_efficiency, one.seconds_per_value)
            for one in constants_M
        ]
    ).T
    pairs = zip(topology.models, constants_M, strict=True)
    peak_M = np.array([gpu.peak_flops_per_s(one.rate) for gpu, one in pairs])
    compute_G = load_G * model.flops_per_assignment / (peak_M * flops_M)[model_G]
    memory_G = touched_G * model.expert_bytes / (topology.memory_bytes_per_s_G * memory_M[model_G])
    values_G = _rows_G(problem, load_G) * model.dispatch_width
    return np.asarray(
        fixed_M[model_G] + (np.maximum(compute_G, memory_G) + values_G * value_M[model_G]) / topology.speed_G
    )


def _rows_G(problem: Problem, load_G: Floats) -> Floats:
    """Vectors that enter each GPU's experts, for this many assignments.

    One an assignment (`slot`), every token of the group (`allgather`), else a token's own once for all its
    experts there: as many as under an even load, so that they grow with the assignments alone.
    """
    gpus, top_k, transport = problem.gpus, problem.model.top_k, problem.workload.transport
    if transport == "slot":
        return load_G
    if transport == "allgather":
        return np.full(gpus, float(problem.workload.tokens_per_rank * gpus))
    return load_G * (1 - (1 - 1 / gpus) ** top_k) * gpus / top_k
