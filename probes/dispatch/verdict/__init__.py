"""The verdict on what was timed: did the prediction hold, is the promised gain there, and if not, why."""

from probes.dispatch.verdict.judge import LayerFigures, Verdict, judge_speed
from probes.dispatch.verdict.tolerance import LawError

__all__ = ["LawError", "LayerFigures", "Verdict", "judge_speed"]
