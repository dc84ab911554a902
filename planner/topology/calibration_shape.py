"""What a calibration holds, as planner/topology/calibration_dict.py draws it."""

from planner.schema import Kind, Listing, Number, Record, Table, Text, Whole
from planner.topology.calibration import (
    HIGHEST_EFFICIENCY,
    LINK_TIERS,
    LONGEST_START_SECONDS,
    LONGEST_TEXT,
    PHASES,
    STATED_TIERS,
    WORK_TIERS,
)

SCHEMA = "moeplan/calibration/1"
MOST_PHASES = 64
LARGEST_COUNT = (1 << 40) - 1
_COUNT = Whole(1, LARGEST_COUNT)
_WORD = Text(form="[a-z0-9][a-z0-9._-]{0,31}", said="a name like gloo or nccl")
_SPAN = Listing(Number(0, 1e300, above=True), 2, 2)  # least and most
_SCALE = Record(
    {
        **dict.fromkeys(("gpus", "domains", "nodes"), _COUNT),
        "tokens": Listing(_COUNT, 2, 2),
        "width": _COUNT,
        "bytes_sent": _SPAN,
        "bytes_per_s": Table(_SPAN, Text(STATED_TIERS)),
    }
)
_REACHED = Record({"share": Number(0, HIGHEST_EFFICIENCY, above=True), "settings": Whole(0, LARGEST_COUNT)})
_PHASE = Record(
    {
        "transport": _WORD,
        "phase": Text(PHASES),
        "start_seconds": Number(0, LONGEST_START_SECONDS),
        "efficiency": Table(_REACHED, Text((*LINK_TIERS, *WORK_TIERS)), 1),
        "scale": _SCALE,
        "settings": _COUNT,
        "error": Number(0),
        "held_out_error": Number(0),
        "machine": Text(longest=LONGEST_TEXT),
        "date": Text(form="[0-9]{4}-[0-9]{2}-[0-9]{2}", said="a day like 2026-01-15"),
    }
)
CALIBRATION_SHAPE = Record({"backend": _WORD, "phases": Listing(_PHASE, 1, MOST_PHASES)})
CALIBRATION = Kind(
    "a calibration",
    SCHEMA,
    "`moeplan validate PLAN --calibrate FILE` writes one",
    CALIBRATION_SHAPE.with_keys(schema=Text((SCHEMA,))),
)
