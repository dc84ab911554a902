"""Planning: from what a person asked to a judged plan, and the questions around it."""

from planner.planning.diagnosis import Finding, diagnose
from planner.planning.evaluation import evaluate_engines, re_evaluate, re_split
from planner.planning.layer_budget import budget_report
from planner.planning.request import PlanRequest, answer, find_load, find_topology, workload_for
from planner.planning.solving import make_plan, problem_of_r

__all__ = [
    "Finding",
    "PlanRequest",
    "answer",
    "budget_report",
    "diagnose",
    "evaluate_engines",
    "find_load",
    "find_topology",
    "make_plan",
    "problem_of_r",
    "re_evaluate",
    "re_split",
    "workload_for",
]
