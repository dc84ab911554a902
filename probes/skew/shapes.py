"""The machines of the benchmark of skew: four GPUs each, in four ways to be connected. Pure.

The rates are so low that what a rank sends takes longer than what a small machine adds. NVLink has 2.75 times
the rate of a NIC, less than in any real machine: both are waited for in some setting.
"""

from typing import Any

from planner.topology import Topology, topology_from_dict

NIC, NVLINK = "4 MB/s", "11 MB/s"  # of four ranks together what a machine with two cores carries with ease
SOURCE = "made up for the benchmark of skew"
FLAT: dict[str, Any] = {"kind": "none"}
# nodes, GPUs of a node, the fabric, and in words
SHAPES: dict[str, tuple[int, int, dict[str, Any], str]] = {
    "2x2": (2, 2, FLAT, "two nodes of two GPUs, NVLink inside"),
    "4x1": (4, 1, FLAT, "four nodes of one GPU"),
    "leaves": (
        4,
        1,
        {"kind": "leaf-spine", "nodes_per_leaf": 2, "oversubscription": 2},
        "four nodes of one GPU, two under each leaf switch, uplinks oversubscribed 2 : 1",
    ),
    "racks": (
        4,
        1,
        {"kind": "none", "nvlink_domain_nodes": 2},
        "four nodes of one GPU, an NVLink domain over each two nodes",
    ),
}


def shape(name: str) -> Topology:
    """The machine of that name."""
    nodes, gpus, fabric, _ = SHAPES[name]
    said = {"evidence": "assumed", "source": SOURCE}
    node: dict[str, Any] = {
        "count": nodes,
        "gpus": {"model": "rank", "count": gpus},
        "nics": [{"gpus": [[gpu] for gpu in range(gpus)], "rate": {"value": NIC, **said}}],
    }
    if gpus > 1 or "nvlink_domain_nodes" in fabric:
        rate = {"value": NVLINK, **said}
        node["nvlink"] = {"kind": "switch", "islands": [{"gpus": list(range(gpus)), "rate": rate}]}
    rank = {"memory": "80 GB", "memory_rate": "3000 GB/s", "flops": {"bf16": "100 TFLOP/s"}, **said}
    return topology_from_dict(
        {
            "name": f"skew-{name}",
            "source": SOURCE,
            "gpu_models": {"rank": rank},
            "nodes": [node],
            "fabric": {**fabric, **said},
        }
    )
