"""Plans: a placement with its cost, bound and provenance; the plan file; the moves between two plans."""

from planner.plan.figures_to_dict import cost_to_dict, loss_to_dict, memory_to_dict
from planner.plan.file import EMITTED_PLAN, disagreements, plan_files, read_plan, write_plan
from planner.plan.from_dict import SavedPlan, held_out_load, plan_from_dict
from planner.plan.judging import judged
from planner.plan.kept_trace import kept_bytes, kept_file, kept_of, read_kept
from planner.plan.moves import Moves, aligned, moves_L, plan_moves, steps_to_pay
from planner.plan.plan import PREVIOUS, REFILLED, Origin, Plan
from planner.plan.plan_shape import PLAN, SCHEMA
from planner.plan.resize import LOST, Resize, after_losing, grown, shrunk
from planner.plan.to_dict import plan_to_dict

__all__ = [
    "EMITTED_PLAN",
    "LOST",
    "PLAN",
    "PREVIOUS",
    "REFILLED",
    "SCHEMA",
    "Moves",
    "Origin",
    "Plan",
    "Resize",
    "SavedPlan",
    "after_losing",
    "aligned",
    "cost_to_dict",
    "disagreements",
    "grown",
    "held_out_load",
    "judged",
    "kept_bytes",
    "kept_file",
    "kept_of",
    "loss_to_dict",
    "memory_to_dict",
    "moves_L",
    "plan_files",
    "plan_from_dict",
    "plan_moves",
    "plan_to_dict",
    "read_kept",
    "read_plan",
    "shrunk",
    "steps_to_pay",
    "write_plan",
]
