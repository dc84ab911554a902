"""Replica rules: how an engine picks, at run time, among the slots that hold one expert."""

from planner.replica.best_split import best_split_1P, steady_split_1P
from planner.replica.blocks import expected_shares
from planner.replica.registry import ACROSS_LAYERS, CHOICES, EXPECTATION, FOLLOW_LOAD, RULES, find_rule
from planner.replica.situation import Shares, Situation
from planner.replica.static import LARGEST_EXACT_TABLE, table_draws

__all__ = [
    "ACROSS_LAYERS",
    "CHOICES",
    "EXPECTATION",
    "FOLLOW_LOAD",
    "LARGEST_EXACT_TABLE",
    "RULES",
    "Shares",
    "Situation",
    "best_split_1P",
    "expected_shares",
    "find_rule",
    "steady_split_1P",
    "table_draws",
]
