"""Cost: predicted seconds, bytes and memory of a placement. Expectations, not one draw."""

from planner.cost.calibrated import extent_of
from planner.cost.coactivation import remote_places_L
from planner.cost.compute import compute_rates, compute_seconds_G
from planner.cost.constants import PhaseConstants, constants_of
from planner.cost.exchange import Exchange, exchanges_L
from planner.cost.hits import TRACED_TOKENS
from planner.cost.loss import AfterLoss, Loss, after_loss
from planner.cost.memory.buffers import low_latency_bytes, low_latency_width
from planner.cost.memory.case import pose_case
from planner.cost.memory.constraint import does_not_fit, grouped_bytes, too_little, within_memory
from planner.cost.memory.ledger import ledger
from planner.cost.memory.reserve import sglang_free_bytes
from planner.cost.over_windows import (
    TRACED_WORK,
    Windows,
    affordable_windows,
    cells_a_token,
    objective_seconds_L,
    windows_of,
)
from planner.cost.perfect import perfect_balance
from planner.cost.phase import efficiency_R
from planner.cost.pipeline import pipelined_seconds
from planner.cost.priced import Cost, StepParts
from planner.cost.redundancy_curve import PATIENCE, TOLERANCE, WORTH, CurvePoint, chosen, levelled_off
from planner.cost.refill import EMPTY, refilled
from planner.cost.resplit import BestSplit, best_split
from planner.cost.routing import Floats, Routing, inclusion_E
from planner.cost.served import Served
from planner.cost.sliced import sliced_cost
from planner.cost.step import cost
from planner.cost.traffic import bytes_of_messages, message_bytes, messages_GG, units
from planner.cost.whole import (
    AS_PLANNED,
    JUDGED_REQUESTS,
    TERMS,
    TTFT_TERMS,
    Asked,
    Judged,
    Law,
    MoeSeconds,
    WholeStep,
    calibration,
    column,
    moe_seconds,
    step_terms,
    ttft_terms,
    whole_step,
)

__all__ = [
    "AS_PLANNED",
    "EMPTY",
    "JUDGED_REQUESTS",
    "PATIENCE",
    "TERMS",
    "TOLERANCE",
    "TRACED_TOKENS",
    "TRACED_WORK",
    "TTFT_TERMS",
    "WORTH",
    "AfterLoss",
    "Asked",
    "BestSplit",
    "Cost",
    "CurvePoint",
    "Exchange",
    "Floats",
    "Judged",
    "Law",
    "Loss",
    "MoeSeconds",
    "PhaseConstants",
    "Routing",
    "Served",
    "StepParts",
    "WholeStep",
    "Windows",
    "affordable_windows",
    "after_loss",
    "best_split",
    "bytes_of_messages",
    "calibration",
    "cells_a_token",
    "chosen",
    "column",
    "compute_rates",
    "compute_seconds_G",
    "constants_of",
    "cost",
    "does_not_fit",
    "efficiency_R",
    "exchanges_L",
    "extent_of",
    "grouped_bytes",
    "inclusion_E",
    "ledger",
    "levelled_off",
    "low_latency_bytes",
    "low_latency_width",
    "message_bytes",
    "messages_GG",
    "moe_seconds",
    "objective_seconds_L",
    "perfect_balance",
    "pipelined_seconds",
    "pose_case",
    "refilled",
    "remote_places_L",
    "sglang_free_bytes",
    "sliced_cost",
    "step_terms",
    "too_little",
    "ttft_terms",
    "units",
    "whole_step",
    "windows_of",
    "within_memory",
]
