"""What a topology file holds, as planner/topology/from_dict.py draws it."""

from planner.base import EVIDENCE_KINDS
from planner.schema import Either, Kind, Listing, Number, Record, Table, Text, Whole
from planner.topology.calibration_shape import CALIBRATION_SHAPE
from planner.topology.machine import LARGEST_GPUS
from planner.topology.nodes import LARGEST_NODE_GPUS, LARGEST_NODE_NICS, LARGEST_SPEED

MOST_SENTENCES = 10_000  # faults of a node
_BASIS = {"evidence": Text(EVIDENCE_KINDS), "source": Text()}
_STATED = Record({"value": Text(longest=200), **_BASIS})
_RATE = Record(_STATED.required, {"stated": _STATED})
_RATES = Either((_RATE, Listing(_RATE, 1, LARGEST_NODE_GPUS)))
_GPUS = Listing(Whole(0, LARGEST_NODE_GPUS - 1), 0, LARGEST_NODE_GPUS)
_NICS = Listing(Whole(0, LARGEST_NODE_NICS - 1), 0, LARGEST_NODE_NICS)
_GROUPS = Listing(_GPUS, 0, LARGEST_NODE_NICS)
_PAIRS = Listing(Listing(Whole(0, LARGEST_NODE_GPUS - 1), 2, 2), 0, LARGEST_NODE_GPUS**2)
_NUMBERS = Listing(Whole(0, 1 << 20), 0, LARGEST_NODE_NICS)

_NVLINK = Record(
    {"kind": Text(("none", "switch", "mesh", "bridge"))},
    {
        "islands": Listing(Record({"gpus": _GPUS, "rate": _RATES}), 0, LARGEST_NODE_GPUS),
        "pairs": Listing(Record({"gpus": _PAIRS, "rate": _RATE}), 0, LARGEST_NODE_GPUS**2),
    },
)
_PCIE = Record(
    {"rate": _RATES},
    {
        "sockets": _NUMBERS,
        "switches": Listing(
            Record({"gpus": _GROUPS, "uplink": _RATE}, {"nics": Listing(_NICS, 0, LARGEST_NODE_NICS)}),
            0,
            LARGEST_NODE_GPUS,
        ),
        "inter_socket": _RATE,
    },
)
_NIC = Record(
    {"gpus": _GROUPS, "rate": _RATE},
    {
        "rails": _NUMBERS,
        "names": Listing(Text(longest=200), 0, LARGEST_NODE_NICS),
        "socket": Whole(0, 1 << 20),
    },
)
_SPEED = Number(0, LARGEST_SPEED, above=True)
_NODE = Record(
    {
        "gpus": Either(
            (
                Record({"model": Text(longest=200), "count": Whole(1, LARGEST_NODE_GPUS)}),
                Listing(Text(longest=200), 1, LARGEST_NODE_GPUS),
            )
        )
    },
    {
        "count": Whole(1, LARGEST_GPUS),
        "names": Listing(Text(longest=300), 0, LARGEST_GPUS),
        "nvlink": _NVLINK,
        "pcie": _PCIE,
        "nics": Listing(_NIC, 0, LARGEST_NODE_NICS),
        "speed": Either((_SPEED, Listing(_SPEED, 0, LARGEST_NODE_GPUS))),
        "devices": Listing(Whole(0, 1 << 20), 0, LARGEST_NODE_GPUS),
        "faults": Listing(Text(), 0, MOST_SENTENCES),
    },
)
_NODES = Whole(1, LARGEST_GPUS)
_RATIO = Number(1, 1e9)
_OF_FABRIC = {
    "nodes_per_leaf": _NODES,
    "nvlink_domain_nodes": _NODES,
    "nodes_per_pod": Whole(0, LARGEST_GPUS),
    "oversubscription": _RATIO,
    "pod_oversubscription": _RATIO,
}
_STATED_FABRIC = Record({"kind": Text(("none", "leaf-spine", "rail")), **_BASIS}, _OF_FABRIC)
_GPU_MODEL = Record(
    {
        "memory": Text(longest=200),
        "memory_rate": Text(longest=200),
        "flops": Table(Text(longest=200), Text(longest=40), 1, 40),
        **_BASIS,
    }
)
TOPOLOGY_SHAPE = Record(
    {
        "name": Text(),
        "source": Text(),
        "nodes": Listing(_NODE, 1, LARGEST_GPUS),
        "fabric": Record(_STATED_FABRIC.required, {**_OF_FABRIC, "stated": _STATED_FABRIC}),
    },
    {"gpu_models": Table(_GPU_MODEL, Text(longest=200)), "calibration": CALIBRATION_SHAPE},
)
TOPOLOGY = Kind("a topology", "", "`moeplan import` and `moeplan probe -o` write one", TOPOLOGY_SHAPE)
