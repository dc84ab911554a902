"""The verdict on a plan: whether it is worth loading, beside what the engine would do by itself."""

from planner.base import human_seconds
from planner.cost import Cost
from planner.plan import Plan
from planner.planning import WORTH_IT
from planner.problem import Survival


def verdict(plan: Plan) -> list[str]:
    """Is the plan worth loading, on load it was not fitted to where there is some? Longest words first."""
    if plan.problem.survive and not any(baseline.survives for baseline in plan.baselines):
        return _price_of_survival(plan, plan.problem.survive)
    before, best = _fastest(plan, only_survivors=True)
    after, where = _seconds(plan.held_out, plan.fitted), "held-out" if plan.held_out else "fitted"
    if nothing_wins(plan):
        nothing = f"none. Doing nothing wins: {human_seconds(after)}, '{best}' {human_seconds(before)}"
        return [f"{nothing} a step ({where})", nothing, "none. Doing nothing wins"]
    gain = f"{1 - after / before:.1%} less MoE time a step"
    return [f"{gain} than '{best}' on {where} load", f"{gain} on {where} load"]


def nothing_wins(plan: Plan) -> bool:
    """Whether what the engine does by itself is as good. Never where it would not survive what is asked."""
    if plan.problem.survive and not any(baseline.survives for baseline in plan.baselines):
        return False
    before, _ = _fastest(plan, only_survivors=True)
    return 1 - _seconds(plan.held_out, plan.fitted) / before < WORTH_IT


def _price_of_survival(plan: Plan, survive: Survival) -> list[str]:
    """What the step takes beside the fastest default, which would lose experts."""
    before, best = _fastest(plan)
    after = _seconds(plan.held_out, plan.fitted)
    change = f"{abs(after / before - 1):.1%} {'more' if after > before else 'less'} MoE time a step"
    survives = f"survives the loss of {survive}, no default does"
    return [f"{survives}: {change} than '{best}'", f"{survives}: {change}", survives]


def _fastest(plan: Plan, *, only_survivors: bool = False) -> tuple[float, str]:
    """Seconds and name of the fastest baseline; ties by name."""
    candidates = (one for one in plan.baselines if one.survives or not only_survivors)
    return min((_seconds(one.held_out, one.fitted), one.name) for one in candidates)


def _seconds(held_out: Cost | None, fitted: Cost) -> float:
    """A step on held-out load where there is some."""
    return (held_out or fitted).total_seconds
