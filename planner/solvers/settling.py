"""The way back from what a search stands in for, to the engine's own rule, and the one comparison of rows.

A search sees a rule by its expectation. Whatever is kept after it, in whatever step, is kept because the
objective over the fitted windows says so under the rule itself.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from planner.cost import Windows, objective_seconds_L, windows_of
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import ACROSS_LAYERS, EXPECTATION, LARGEST_EXACT_TABLE, table_draws
from planner.solvers.best import Score, best_rows
from planner.solvers.kernels.settle import settle

# What the search follows to the letter; and what the engine balances anew for every batch
NOTHING_TO_SETTLE = ("even", "nearest", "lp")


def in_expectation(problem: Problem) -> Problem:
    """The same problem under a rule that costs less to evaluate and has the same mean.

    A solver searches with it, the judge does not.
    """
    return problem.with_rule(EXPECTATION.get(problem.replica_rule, problem.replica_rule))


def layer_by_layer(problem: Problem) -> Problem:
    """The same problem under its own rule, or in expectation where rows of one layer change another's price:
    what compares rows that are put together from several placements.
    """
    return in_expectation(problem) if problem.replica_rule in ACROSS_LAYERS else problem


def fitted_windows(problem: Problem) -> Windows:
    """The fitted load in a few windows."""
    return windows_of(problem, problem.load)


def objective_score(problem: Problem, windows: Windows | None = None) -> Score:
    """The objective over these windows, those of the fitted load where none are given."""
    return partial(objective_seconds_L, problem, windows or fitted_windows(problem))


def settled_rows(problem: Problem, windows: Windows, placement: Placement) -> Placement:
    """The placement, with the layers settled that this makes better by the objective over the windows, under
    the engine's own rule.

    Settling one layer changes no other. No layer scores worse than in `placement`.
    """
    if problem.replica_rule in NOTHING_TO_SETTLE or _too_large(problem, placement):
        return placement
    offers = (settle(problem, placement, loads) for loads in _loads(problem, windows))
    return best_rows(placement, offers, objective_score(problem, windows))


def _loads(problem: Problem, windows: Windows) -> Iterator[Sequence[LoadProfile]]:
    """What rows are settled under: the sum, then domain by domain, then every window."""
    yield (problem.load,)
    domains = [problem.load.of_domain(name) for name in problem.load.domain_names]
    if len(domains) > 1:
        yield [load for load in domains if load is not None]
    if len(windows.loads) > max(len(domains), 1):
        yield windows.loads


def _too_large(problem: Problem, placement: Placement) -> bool:
    if problem.replica_rule != "nearest-static":
        return False
    return table_draws(placement, problem.model) > LARGEST_EXACT_TABLE
