"""From a Problem to what the search takes: places, who reaches them, what is known of a layer's tokens.

Shapes: G GPUs, N places, W windows, E experts, T tokens, K = top_k.
"""

import numpy as np

from planner.cost import inclusion_E, units
from planner.load import merge_windows
from planner.problem import Problem
from planner.solvers.kernels.packing import Ints
from planner.solvers.methods.affinity.copies import Layer
from planner.solvers.methods.affinity.evidence import Counted, Evidence, Traced
from planner.solvers.methods.affinity.reach import Reach

MOST_WINDOWS = 4  # of load that places are balanced over
# Of a GPU's even load: an expert keeps as many copies as that takes, for places balance no GPU with a larger
# one
LARGEST_COPY = 0.75
MOST_PLACES = 32  # beyond, a layer takes many seconds, and the answer is that of `refine`
MOST_WORK = 4_000_000  # token x expert x cell: beyond, sources are averaged, then tokens are left out


def places(problem: Problem) -> Ints:
    """place_G: what a message travels to, NVLink domains or nodes.

    The GPU where there is one node only and messages go to GPUs.
    """
    unit_G = units(problem)
    return np.arange(problem.gpus) if unit_G.max() == 0 and problem.workload.transport == "rank" else unit_G


def helps(problem: Problem) -> bool:
    """Whether messages can be saved, and in reasonable time.

    Tokens are known to share messages, or a rule prefers copies at the own place. Not where losses are to be
    survived: copies go where they save messages, not to every expert.
    """
    transport = problem.workload.transport
    if problem.survive is not None:
        return False
    several = 1 < len(np.unique(places(problem))) <= MOST_PLACES
    shares_messages = problem.load.trace is not None and transport in ("node", "rank")
    return several and transport != "allgather" and (shares_messages or prefers_own(problem))


def prefers_own(problem: Problem) -> bool:
    """The nearest rules look at the own GPU and node; a place that is neither is not preferred."""
    place_G = places(problem)
    same = np.array_equal(place_G, problem.node_G) or problem.topology.node_count == 1
    return same and problem.replica_rule.startswith("nearest")


def reach_of(problem: Problem) -> Reach:
    gpus_N = np.bincount(places(problem))
    near = prefers_own(problem) and problem.redundant > 0  # without replicas nothing can be preferred
    tokens = 0 if problem.load.trace is None else problem.load.trace.experts_LTK[0].size
    return Reach(gpus_N, near, averaged=not near or tokens * len(gpus_N) ** 2 > MOST_WORK)


def layer_of(problem: Problem, reach: Reach, row: int) -> Layer:
    """The layer in that row, on the problem's own load."""
    counts_WE = merge_windows(problem.load, MOST_WINDOWS).tokens_WLE[:, row].astype(np.float64)
    counts_WE = counts_WE[counts_WE.sum(axis=1) > 0]
    if not len(counts_WE):
        counts_WE = np.ones((1, problem.model.experts))
    least_E = np.maximum(np.ceil(problem.shares_LE[row] * problem.gpus / LARGEST_COPY), 1).astype(np.int64)
    share_WE = counts_WE / counts_WE.sum(axis=1, keepdims=True)
    return Layer(reach, _evidence(problem, reach, row), share_WE, reach.gpus_N, least_E)


def _evidence(problem: Problem, reach: Reach, row: int) -> Evidence:
    trace, experts = problem.load.trace, problem.model.experts
    if problem.workload.transport == "slot" or trace is None or not trace.recorded_L[row]:
        return Counted(inclusion_E(problem.shares_LE[row], problem.model.top_k), reach.weight_X)
    experts_TK = trace.experts_LTK[row]
    most = max(MOST_WORK // (experts_TK.shape[1] * len(reach.weight_X)), 1)
    return Traced(experts_TK[:: -(-len(experts_TK) // most)], experts, reach.weight_X)
