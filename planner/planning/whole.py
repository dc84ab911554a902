"""The step that a layout is judged by: seconds by part, and tokens/s a GPU.

The one place that knows how much of a step is priced.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.bounds import PARTS
from planner.cost import Cost
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
    """The step of the judged cost of a placement."""
    del engine
    seconds = {part: float(getattr(cost, f"{part}_seconds_L").sum()) for part in PARTS}
    tokens = problem.workload.tokens_per_rank / sum(seconds.values())
    return Step(seconds, tokens, None, "MoE layers alone")
