"""Solvers: Problem -> Placement. Methods, what they share, and the search for the best row of each layer."""

from planner.solvers.best import Score, best_rows
from planner.solvers.enumeration import every_placement
from planner.solvers.jobs import worked_off
from planner.solvers.kernels.disperse import disperse
from planner.solvers.kernels.moves import move_replicas
from planner.solvers.kernels.packing import pack, peaks, replicate
from planner.solvers.kernels.swaps import balance
from planner.solvers.kernels.warm import candidates
from planner.solvers.levelling import levelled
from planner.solvers.methods.auto import PORTFOLIO, solve_with_bounds
from planner.solvers.methods.cpsat import SMALL_CELLS
from planner.solvers.proofs import Judge, Proof, prove
from planner.solvers.registry import Progress, find_candidates, find_method
from planner.solvers.replanning import CurrentPlacement, chosen, replanned_within
from planner.solvers.search import Search, find_placement, whole_placement
from planner.solvers.settling import (
    fitted_windows,
    in_expectation,
    layer_by_layer,
    objective_score,
    settled_rows,
)
from planner.solvers.workforce import Workforce

__all__ = [
    "PORTFOLIO",
    "SMALL_CELLS",
    "CurrentPlacement",
    "Judge",
    "Progress",
    "Proof",
    "Score",
    "Search",
    "Workforce",
    "balance",
    "best_rows",
    "candidates",
    "chosen",
    "disperse",
    "every_placement",
    "find_candidates",
    "find_method",
    "find_placement",
    "fitted_windows",
    "in_expectation",
    "layer_by_layer",
    "levelled",
    "move_replicas",
    "objective_score",
    "pack",
    "peaks",
    "prove",
    "replanned_within",
    "replicate",
    "settled_rows",
    "solve_with_bounds",
    "whole_placement",
    "worked_off",
]
