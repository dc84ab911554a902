"""Base: one line for bad input, SI inside and text at the edge, evidence, safe files, things by name."""

from planner.base.arrays import parse_npz, read_npz
from planner.base.csv_text import csv_rows, read_csv
from planner.base.errors import BadInput, Infeasible, Stopped
from planner.base.evidence import EVIDENCE_KINDS, Evidence, GpuModel, Rate, sum_rates, weakest
from planner.base.files import (
    LARGEST_FILE_BYTES,
    read_bytes,
    read_json,
    read_text,
    read_yaml,
    write_atomic,
    write_json,
)
from planner.base.interrupts import finishing
from planner.base.json_text import dump_json, parse_json
from planner.base.keys import check_keys
from planner.base.names import find_named, modules_with, nearest
from planner.base.shipped import data_file, topologies_folder, topology_names
from planner.base.shown import ACTS, flat, harmless, one_line, shown
from planner.base.swap import unfinished, write_folder
from planner.base.units import (
    human_bandwidth,
    human_bytes,
    human_seconds,
    is_whole,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    parse_seconds,
)
from planner.base.yaml_text import parse_yaml

__all__ = [
    "ACTS",
    "EVIDENCE_KINDS",
    "LARGEST_FILE_BYTES",
    "BadInput",
    "Evidence",
    "GpuModel",
    "Infeasible",
    "Rate",
    "Stopped",
    "check_keys",
    "csv_rows",
    "data_file",
    "dump_json",
    "find_named",
    "finishing",
    "flat",
    "harmless",
    "human_bandwidth",
    "human_bytes",
    "human_seconds",
    "is_whole",
    "modules_with",
    "nearest",
    "one_line",
    "parse_bandwidth",
    "parse_bytes",
    "parse_flops",
    "parse_json",
    "parse_npz",
    "parse_seconds",
    "parse_yaml",
    "read_bytes",
    "read_csv",
    "read_json",
    "read_npz",
    "read_text",
    "read_yaml",
    "shown",
    "sum_rates",
    "topologies_folder",
    "topology_names",
    "unfinished",
    "weakest",
    "write_atomic",
    "write_folder",
    "write_json",
]
