"""A re-plan of what runs: chosen within the moves allowed, aligned to its slots, and the moves to it."""

from dataclasses import replace
from functools import partial

from planner.cost import cost, objective_seconds_L
from planner.placement import Placement
from planner.plan import Moves, aligned, plan_moves
from planner.problem import Problem
from planner.solvers import (
    CurrentPlacement,
    chosen,
    fitted_windows,
    in_expectation,
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
    rule, as far as the moves allow.
    """
    searched = in_expectation(problem)
    seconds_L = partial(objective_seconds_L, searched, fitted_windows(searched))
    within = replanned_within(searched, current, found, seconds_L)
    settled = aligned(current.placement, settled_rows(problem, within))
    if (settled.expert_LP == within.expert_LP).all():
        return within
    most = current.placement.expert_LP.size if current.most_moves is None else current.most_moves
    offers = [within, settled]
    return chosen(current.placement, offers, lambda offer: cost(problem, offer).layer_seconds_L, most)
