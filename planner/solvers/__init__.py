"""Solvers: Problem -> Placement. Methods, what they share, and the search for the best row of each layer."""

from planner.solvers.enumeration import every_placement
from planner.solvers.jobs import worked_off
from planner.solvers.kernels.disperse import disperse
from planner.solvers.kernels.moves import move_replicas
from planner.solvers.kernels.packing import pack, peaks, replicate
from planner.solvers.kernels.swaps import balance
from planner.solvers.kernels.warm import candidates
from planner.solvers.methods.auto import solve_with_bounds
from planner.solvers.proofs import Judge, Proof, prove
from planner.solvers.registry import Progress, find_candidates, find_method
from planner.solvers.replanning import CurrentPlacement, chosen, replanned_within
from planner.solvers.search import Search, find_placement
from planner.solvers.settling import fitted_windows, in_expectation, objective_score, settled_rows
from planner.solvers.workforce import Workforce

__all__ = [
    "CurrentPlacement",
    "Judge",
    "Progress",
    "Proof",
    "Search",
    "Workforce",
    "balance",
    "candidates",
    "chosen",
    "disperse",
    "every_placement",
    "find_candidates",
    "find_method",
    "find_placement",
    "fitted_windows",
    "in_expectation",
    "move_replicas",
    "objective_score",
    "pack",
    "peaks",
    "prove",
    "replanned_within",
    "replicate",
    "settled_rows",
    "solve_with_bounds",
    "worked_off",
]
