"""Problems: the question a solver is asked, and the judge of every answer."""

from planner.problem.exposure import Exposure, exposure
from planner.problem.islands import island_LG, islands_L
from planner.problem.layers import blocks_of, layers_of
from planner.problem.objective import Objective, parse_objective
from planner.problem.problem import Problem
from planner.problem.redundancy import (
    LeastRedundant,
    check_slots,
    fewest_redundant,
    joinable,
    least_redundant,
)
from planner.problem.rules import Violation, row_violations, survives, violations
from planner.problem.survival import Survival, held_places_LE, loss_sets, lost_experts, parse_survival
from planner.problem.workload import BYTES_PER_ELEMENT, OUTPUT_TOKENS, PROMPT_TOKENS, TRANSPORTS, Workload

__all__ = [
    "BYTES_PER_ELEMENT",
    "OUTPUT_TOKENS",
    "PROMPT_TOKENS",
    "TRANSPORTS",
    "Exposure",
    "LeastRedundant",
    "Objective",
    "Problem",
    "Survival",
    "Violation",
    "Workload",
    "blocks_of",
    "check_slots",
    "exposure",
    "fewest_redundant",
    "held_places_LE",
    "island_LG",
    "islands_L",
    "joinable",
    "layers_of",
    "least_redundant",
    "loss_sets",
    "lost_experts",
    "parse_objective",
    "parse_survival",
    "row_violations",
    "survives",
    "violations",
]
