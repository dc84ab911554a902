"""The verdict on a plan: whether it is worth loading, beside what the engine would do by itself."""

from typing import NamedTuple

from planner.base import human_seconds
from planner.plan import Plan
from planner.planning import WORTH_IT
from planner.problem import Survival


class Rival(NamedTuple):
    """What a plan is held against."""

    seconds: float  # a step
    name: str
    survives: bool  # the losses that the plan is to survive


class Contest(NamedTuple):
    """Seconds of a step of a plan and of its rivals, on held-out load where there is some."""

    seconds: float
    held_out: bool
    survive: Survival | None
    rivals: tuple[Rival, ...]

    @property
    def side(self) -> str:
        return "held-out" if self.held_out else "fitted"

    @property
    def only_the_plan_survives(self) -> bool:
        return self.survive is not None and not any(rival.survives for rival in self.rivals)

    def fastest(self, *, only_survivors: bool = False) -> Rival:
        """Ties by name."""
        return min(rival for rival in self.rivals if rival.survives or not only_survivors)


def contest_of(plan: Plan) -> Contest:
    rivals = tuple(
        Rival((one.held_out or one.fitted).total_seconds, one.name, one.survives) for one in plan.baselines
    )
    seconds = (plan.held_out or plan.fitted).total_seconds
    return Contest(seconds, plan.held_out is not None, plan.problem.survive, rivals)


def verdict(contest: Contest) -> list[str]:
    """Is the plan worth loading, on load it was not fitted to where there is some? Longest words first."""
    if contest.only_the_plan_survives:
        return _price_of_survival(contest)
    best, after, where = contest.fastest(only_survivors=True), contest.seconds, contest.side
    if nothing_wins(contest):
        nothing = (
            f"none. Doing nothing wins: {human_seconds(after)}, '{best.name}' {human_seconds(best.seconds)}"
        )
        return [f"{nothing} a step ({where})", nothing, "none. Doing nothing wins"]
    gain = f"{1 - after / best.seconds:.1%} less MoE time a step"
    return [f"{gain} than '{best.name}' on {where} load", f"{gain} on {where} load"]


def nothing_wins(contest: Contest) -> bool:
    """Whether what the engine does by itself is as good. Never where it would not survive what is asked."""
    if contest.only_the_plan_survives:
        return False
    return 1 - contest.seconds / contest.fastest(only_survivors=True).seconds < WORTH_IT


def _price_of_survival(contest: Contest) -> list[str]:
    """What the step takes beside the fastest default, which would lose experts."""
    best, after = contest.fastest(), contest.seconds
    change = (
        f"{abs(after / best.seconds - 1):.1%} {'more' if after > best.seconds else 'less'} MoE time a step"
    )
    survives = f"survives the loss of {contest.survive}, no default does"
    return [f"{survives}: {change} than '{best.name}'", f"{survives}: {change}", survives]
