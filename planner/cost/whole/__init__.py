"""A whole step: what attention, dense layers and the engine itself add to the MoE layers."""

from planner.cost.whole.asked import Asked
from planner.cost.whole.first_token import JUDGED_REQUESTS, TTFT_TERMS, ttft_terms
from planner.cost.whole.law import AS_PLANNED, Judged, Law, calibration, column
from planner.cost.whole.step import WholeStep, whole_step
from planner.cost.whole.terms import TERMS, MoeSeconds, moe_seconds, step_terms

__all__ = [
    "AS_PLANNED",
    "JUDGED_REQUESTS",
    "TERMS",
    "TTFT_TERMS",
    "Asked",
    "Judged",
    "Law",
    "MoeSeconds",
    "WholeStep",
    "calibration",
    "column",
    "moe_seconds",
    "step_terms",
    "ttft_terms",
    "whole_step",
]
