"""The step that a layout is judged by: seconds by part, and tokens/s a GPU.

The one place that knows how much of a step is priced.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.cost import Cost, whole_step
from planner.problem import Problem


@dataclass(frozen=True)
class Step:
    """`error`: the share by which its seconds may be off, None where nobody has measured that."""

    seconds: Mapping[str, float]  # by part
    tokens_per_s_per_gpu: float
    error: float | None
    error_text: str

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())


def step_of(problem: Problem, cost: Cost, engine: str | None) -> Step:
    """The step of the judged cost of a placement: all of it, as far as it is predicted."""
    found = whole_step(problem, cost, engine)
    return Step(found.seconds, found.tokens_per_s_per_gpu, found.error_share, found.error)
