"""Expert compute: seconds of each GPU, by its assignments or by the weights it reads, whichever takes longer.

Shapes: S source ranks (1 where all behave alike, else G), P slots, G GPUs, C slots that may be missed.
"""

import numpy as np

from planner.cost.constants import COMPUTE
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

    A GPU's speed divides all but the fixed part, which is the host's.
    """
    dtype = "fp8" if problem.model.weight_dtype == "fp8" else "bf16"
    peak_G, bandwidth_G = problem.topology.peak_flops_per_s_G(dtype), problem.topology.memory_bytes_per_s_G
    compute_G = load_G * problem.model.flops_per_assignment / (peak_G * COMPUTE.flops_efficiency)
    memory_G = touched_G * problem.model.expert_bytes / (bandwidth_G * COMPUTE.memory_efficiency)
    return COMPUTE.fixed_seconds + np.maximum(compute_G, memory_G) / problem.topology.speed_G
