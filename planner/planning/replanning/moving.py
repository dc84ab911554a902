"""A re-plan of what runs: chosen within the moves allowed, aligned to its slots, and the moves to it."""

from dataclasses import replace

from planner.placement import Placement
from planner.plan import Moves, aligned, plan_moves
from planner.problem import Problem
from planner.replica import ACROSS_LAYERS
from planner.solvers import (
    CurrentPlacement,
    chosen,
    fitted_windows,
    in_expectation,
    objective_score,
    replanned_within,
    settled_rows,
)


def moved(problem: Problem, current: CurrentPlacement, placement: Placement) -> tuple[Placement, Moves]:
    """The placement with experts that stay in their slots, and the moves to it."""
    old, most = current.placement, current.most_moves
    if current.resize is not None:
        old = current.resize.left
        placement = aligned(old, placement)
        most = None if most is None else most + current.needed_moves
    moves = plan_moves(problem, old, placement, current.source, most, current.resize)
    return placement, replace(moves, needed=current.needed_moves)


def replanned(problem: Problem, current: CurrentPlacement, found: Placement) -> Placement:
    """The re-plan by the objective over fitted windows in expectation; then settled under the engine's own
    rule, as far as the moves allow, and kept where the objective is better than that of what runs.
    """
    old, windows = current.placement, fitted_windows(problem)
    most = old.expert_LP.size if current.most_moves is None else current.most_moves
    within = replanned_within(
        in_expectation(problem), current, found, objective_score(in_expectation(problem), windows)
    )
    settled = aligned(old, settled_rows(problem, windows, within))
    score = objective_score(problem, windows)
    if problem.replica_rule not in ACROSS_LAYERS:
        return chosen(old, [old, within, settled], score, most)
    best = chosen(old, [within, settled], score, most)  # settling changes no other layer, moving does
    return best if score(best).sum() < score(old).sum() else old
