"""What a load file in JSON or YAML holds: counts or a trace as lists of numbers, and what is known of it."""

from planner.load.recording import LARGEST_ID, PHASES
from planner.schema import Either, Kind, Listing, Nested, Record, Table, Text, Whole

MOST_WINDOWS = 1 << 20
LAYER_ID = Text(form="0|[1-9][0-9]{0,8}", said="a layer id, a whole number")
_ARRAY = Nested((2, 3))
_BY_LAYER = Table(Nested((1,)), LAYER_ID, 1)
_NAMES = Listing(Text(), 0, MOST_WINDOWS)
_KEYS = Record(
    {},
    {
        "counts": Either((_ARRAY, _BY_LAYER)),
        "trace": Nested((3,)),
        "sequence_lengths": Listing(Whole(1, LARGEST_ID), 0, MOST_WINDOWS),
        "layer_ids": Listing(Whole(0, 10**9), 0, 1 << 20),
        "windows": _NAMES,
        "window_unit": Text(),
        "phase": Text(PHASES),
        "source": Text(),
        "model": Text(),
        "notes": _NAMES,
    },
)
LOAD = Kind("a load", "", "`moeplan record` and engines write one", Either((_ARRAY, _KEYS)))
PUBLISHED = Kind(
    LOAD.called, "", LOAD.made_by, Either((_ARRAY, _KEYS, _BY_LAYER))
)  # a bare mapping by layer too
KEYS = tuple(_KEYS.optional)
