"""The verdict on a plan: whether it is worth loading, beside what the engine would do by itself."""

from planner.base import human_seconds
from planner.cost import Cost
from planner.plan import Plan
from planner.problem import Survival

WORTH_IT = 0.01  # a gain below this share of the step is called no gain


def verdict(plan: Plan) -> str:
    """One sentence: is the plan worth loading, on load it was not fitted to where there is some?"""
    if plan.problem.survive and not any(baseline.survives for baseline in plan.baselines):
        return _price_of_survival(plan, plan.problem.survive)
    before, best = _fastest(plan, only_survivors=True)
    after, where = _seconds(plan.held_out, plan.fitted), "held-out" if plan.held_out else "fitted"
    gain = 1 - after / before
    if gain < WORTH_IT:
        return (
            f"Doing nothing wins: '{best}' is predicted {human_seconds(before)} a step on {where} load, "
            f"this plan {human_seconds(after)}."
        )
    return (
        f"The plan is predicted to take {gain:.1%} less time a step than the best default ('{best}') "
        f"on {where} load."
    )


def _price_of_survival(plan: Plan, survive: Survival) -> str:
    """What the step takes beside the fastest default, which would lose experts."""
    before, best = _fastest(plan)
    after = _seconds(plan.held_out, plan.fitted)
    change = f"{abs(after / before - 1):.1%} {'more' if after > before else 'less'} time a step than '{best}'"
    return (
        f"No default placement survives the loss of {survive}; the plan does, "
        f"and is predicted to take {change}."
    )


def _fastest(plan: Plan, *, only_survivors: bool = False) -> tuple[float, str]:
    """Seconds and name of the fastest baseline; ties by name."""
    candidates = (one for one in plan.baselines if one.survives or not only_survivors)
    return min((_seconds(one.held_out, one.fitted), one.name) for one in candidates)


def _seconds(held_out: Cost | None, fitted: Cost) -> float:
    """A step on held-out load where there is some."""
    return (held_out or fitted).total_seconds
