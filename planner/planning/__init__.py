"""Planning: from what a person asked to a judged plan, and the questions around it."""

from planner.planning.diagnosis import Finding, examine
from planner.planning.evaluating import evaluate_engines, re_evaluate, re_split
from planner.planning.layer_budget import budget_report
from planner.planning.planning import make_plan, poser
from planner.planning.request import Question, answer, find_load, find_topology, workload_for

__all__ = ["Finding", "Question", "answer", "budget_report", "evaluate_engines", "examine", "find_load", "find_topology", "make_plan", "poser", "re_evaluate", "re_split", "workload_for"]
