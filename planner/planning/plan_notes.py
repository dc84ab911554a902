"""What must be said of a plan beside its figures: what decided nothing, what the judge could not follow."""

from planner.placement import Placement
from planner.problem import Problem
from planner.replica import LARGEST_EXACT_TABLE, table_draws
from planner.solvers import Search


def objective_notes(problem: Problem, search: Search) -> tuple[str, ...]:
    """Where the objective asked for decides nothing."""
    objective = problem.objective
    if objective.kind == "mean":
        return ()
    asked = f"the objective {objective.text}"
    if search.method != "auto":
        only = f"method {search.method} only balances; auto compares by the objective"
        return (f"{asked} is reported, not searched for: {only}",)
    if problem.load.windows == 1:
        one = "one was fitted, so it is that window's time"
        return (f"{asked} needs several windows to tell them apart; {one}",)
    return ()


def rule_notes(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """What the judge could not follow to the letter."""
    if problem.replica_rule != "nearest-static":
        return ()
    if table_draws(placement, problem.model) <= LARGEST_EXACT_TABLE:
        return ()
    judged_by = "the plan is judged in its expectation, the rule 'nearest'"
    return (f"the engine's dispatch table is too large to reproduce draw by draw: {judged_by}",)
