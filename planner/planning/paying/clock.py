"""What a step takes, all of it: a gain in the MoE layers is a smaller one of the whole step."""

from planner.cost import Cost, whole_step
from planner.problem import Problem


def step_seconds(problem: Problem, cost: Cost, engine: str | None) -> float:
    """Seconds of the whole step of a plan with this cost."""
    return whole_step(problem, cost, engine).total_seconds
