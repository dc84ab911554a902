"""Maps: an engine's map files checked, converted, read back, and written from a plan."""

from planner.maps.check import judge
from planner.maps.convert import convert_file, rows_of, write_map
from planner.maps.emission import emit_plan
from planner.maps.folder import check_file
from planner.maps.manifest import EMISSION
from planner.maps.pair import emit_pair
from planner.maps.read import find_map, read_value
from planner.maps.recorded_under import read_slot_map
from planner.maps.rules import rows_LP
from planner.maps.written import write_emission, write_pair

__all__ = [
    "EMISSION",
    "check_file",
    "convert_file",
    "emit_pair",
    "emit_plan",
    "find_map",
    "judge",
    "read_slot_map",
    "read_value",
    "rows_LP",
    "rows_of",
    "write_emission",
    "write_map",
    "write_pair",
]
