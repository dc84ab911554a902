"""What a search stands in for: a rule by its expectation, the fitted load by windows; and the way back."""

from planner.cost import Windows, cost, objective_seconds_L, windows_of
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import EXPECTATION, LARGEST_EXACT_TABLE, table_draws
from planner.solvers.best import rows_where
from planner.solvers.kernels.settle import settle

SETTLED_BY_SEARCH = ("even", "nearest")  # rules that the search follows to the letter


def in_expectation(problem: Problem) -> Problem:
    """The same problem under a rule that costs less to evaluate and has the same mean.

    A solver searches with it, the judge does not.
    """
    return problem.with_rule(EXPECTATION.get(problem.replica_rule, problem.replica_rule))


def fitted_windows(problem: Problem) -> Windows:
    """The fitted load in a few windows."""
    return windows_of(problem, problem.load)


def settled_rows(problem: Problem, placement: Placement) -> Placement:
    """The placement, with the layers settled that this makes faster under the engine's own rule.

    Settling one layer changes no other. Compared on the whole fitted load, not by windows: that left layers
    unsettled which gained on held-out load (docs/log.md).
    """
    if problem.replica_rule in SETTLED_BY_SEARCH or _too_large(problem, placement):
        return placement
    settled = settle(problem, placement)
    if problem.objective.robust:  # the sum of the domains says nothing of the worst
        windows = fitted_windows(problem)
        after_L, before_L = (objective_seconds_L(problem, windows, some) for some in (settled, placement))
    else:
        after_L, before_L = (cost(problem, some).layer_seconds_L for some in (settled, placement))
    return rows_where(after_L < before_L, settled, placement)


def _too_large(problem: Problem, placement: Placement) -> bool:
    if problem.replica_rule != "nearest-static":
        return False
    return table_draws(placement, problem.model) > LARGEST_EXACT_TABLE
