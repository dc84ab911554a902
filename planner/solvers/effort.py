"""About how long a search takes in one process, from its size alone.

So the choice of processes is the same on every machine.
"""

from planner.cost import TRACED_TOKENS, TRACED_WORK, cells_a_token
from planner.problem import Problem
from planner.solvers.methods import auto, cpsat
from planner.solvers.methods.affinity.layers import helps

CELL_SECONDS, SLOT_SECONDS = 1.5e-8, 2e-5  # for a cell of a judgement, and a slot of a layer
TRACED_CELL_SECONDS = 3.5e-9  # for a cell of a judgement over traced tokens
AFFINITY_SECONDS = 0.5  # to bring a traced layer's experts together
CANDIDATES, NEAR_CANDIDATES = 4, 10  # that `auto` judges, about, and where near replicas are preferred


def search_seconds(problem: Problem, method: str, windows: int) -> float:
    layers = len(problem.model.placed_layer_ids)
    judging = 0.0
    if method == "auto":
        candidates = NEAR_CANDIDATES if problem.spreads_over_nodes else CANDIDATES
        judging = candidates * layers * _judgement_seconds(problem, windows)
    if method in ("auto", "affinity") and problem.load.trace is not None and helps(problem):
        judging += layers * AFFINITY_SECONDS
    return judging + layers * problem.slots * SLOT_SECONDS + _proving_seconds(problem, method)


def _judgement_seconds(problem: Problem, windows: int) -> float:
    """For one layer of one placement."""
    gpus, transport, trace = problem.gpus, problem.workload.transport, problem.load.trace
    sources = gpus if problem.replica_rule.startswith(("nearest", "fixed")) else 1
    cells = sources * problem.slots + (gpus**2 if sources > 1 or transport == "node" else gpus)
    seconds = windows * cells * CELL_SECONDS
    if trace is not None and transport in {"rank", "node"}:
        tokens = min(trace.experts_LTK.shape[1], windows * TRACED_TOKENS)
        seconds += min(tokens * cells_a_token(problem), TRACED_WORK) * TRACED_CELL_SECONDS
    return seconds


def _proving_seconds(problem: Problem, method: str) -> float:
    if method == "cpsat":
        return cpsat.TOTAL_DETERMINISTIC_SECONDS
    small = problem.model.experts * problem.gpus <= cpsat.SMALL_CELLS
    return auto.DETERMINISTIC_SECONDS if method == "auto" and small else 0.0
