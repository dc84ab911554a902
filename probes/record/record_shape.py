"""What a probe file holds. What is not known is left out, never null."""

from planner.schema import Kind, Listing, Record, Text, shape_of
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.ranks.launch import Launch

SCHEMA = "moeplan/probe/1"
TAKEN = Text(
    form="[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z",
    said="a time like 2026-01-15T09:30:00Z",
)
_HOST = shape_of(
    HostFacts,
    {
        "gpus": Listing(shape_of(GpuFact, null=False), 1, LARGEST_NODE_GPUS),
        "nics": Listing(shape_of(NicFact, null=False), 0, LARGEST_NODE_NICS),
        "nvlink_kind": Text(("none", "switch", "mesh", "bridge")),
        "evidence": Text(("read",)),
    },
    null=False,
)
PROBE = Kind(
    "a probe file",
    SCHEMA,
    "`moeplan probe --record FOLDER` writes one",
    Record(
        {"schema": Text((SCHEMA,)), "host": _HOST, "taken": TAKEN}, {"launch": shape_of(Launch, null=False)}
    ),
)
