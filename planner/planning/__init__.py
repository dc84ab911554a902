"""Planning: from what a person asked to a judged plan, and the questions around it."""

from planner.planning.answer import answer
from planner.planning.comparing import CompareRequest, Comparison, Side, compare
from planner.planning.diagnosis import (
    GOOD_ENOUGH,
    Diagnosis,
    FabricVerdict,
    Fault,
    Reading,
    diagnose,
    sentence,
)
from planner.planning.evaluation import Anew, Judged, evaluate_engines, judged_anew, re_split
from planner.planning.layer_budget import budget_report
from planner.planning.lookup import find_load, find_topology, workload_for
from planner.planning.losing import Losses, LossKind, look_at_losses
from planner.planning.paying import Pays, Rebalancing, pays
from planner.planning.paying import Row as PaysRow
from planner.planning.replanning import parse_moves
from planner.planning.request import PlanRequest
from planner.planning.serving import Serving, would_serve
from planner.planning.solving import make_plan, problem_of_r
from planner.planning.sweeping import Figures, Ranked, Standing, Sweep, SweepRequest, best_plan, sweep
from planner.planning.sweeping import Row as SweepRow
from planner.planning.verbs import evaluate, solve
from planner.planning.worth import WORTH_IT

__all__ = [
    "GOOD_ENOUGH",
    "WORTH_IT",
    "Anew",
    "CompareRequest",
    "Comparison",
    "Diagnosis",
    "FabricVerdict",
    "Fault",
    "Figures",
    "Judged",
    "LossKind",
    "Losses",
    "Pays",
    "PaysRow",
    "PlanRequest",
    "Ranked",
    "Reading",
    "Rebalancing",
    "Serving",
    "Side",
    "Standing",
    "Sweep",
    "SweepRequest",
    "SweepRow",
    "answer",
    "best_plan",
    "budget_report",
    "compare",
    "diagnose",
    "evaluate",
    "evaluate_engines",
    "find_load",
    "find_topology",
    "judged_anew",
    "look_at_losses",
    "make_plan",
    "parse_moves",
    "pays",
    "problem_of_r",
    "re_split",
    "sentence",
    "solve",
    "sweep",
    "workload_for",
    "would_serve",
]
