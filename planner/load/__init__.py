"""Loads: assignments counted per window, layer and expert, from every file that people and engines write."""

from planner.load.capacity.drops import capacity_report, parse_share
from planner.load.cooccurrence import drawn_trace
from planner.load.dense import check_dense
from planner.load.dumps.opened import TORCH_SUFFIXES
from planner.load.dumps.slots import SlotMap, slot_map
from planner.load.dumps.tensors import read_torch
from planner.load.heard import Heard, Known, Source, Window, load_of_counts, placed_counts, since
from planner.load.load_shape import PUBLISHED
from planner.load.profile import LoadProfile, Trace
from planner.load.published import shipped_load, uniform_load
from planner.load.read import read_load
from planner.load.skewed import hot_shares, lognormal_shares
from planner.load.spans import named_spans, spans
from planner.load.split import merge_windows, split_notes, split_windows, window_groups
from planner.load.trace import load_of_rows

__all__ = [
    "PUBLISHED",
    "TORCH_SUFFIXES",
    "Heard",
    "Known",
    "LoadProfile",
    "SlotMap",
    "Source",
    "Trace",
    "Window",
    "capacity_report",
    "check_dense",
    "drawn_trace",
    "hot_shares",
    "load_of_counts",
    "load_of_rows",
    "lognormal_shares",
    "merge_windows",
    "named_spans",
    "parse_share",
    "placed_counts",
    "read_load",
    "read_torch",
    "shipped_load",
    "since",
    "slot_map",
    "spans",
    "split_notes",
    "split_windows",
    "uniform_load",
    "window_groups",
]
