"""Small clusters of every kind of link that there is."""

from typing import Any

from planner.base import Evidence, GpuModel, Rate
from planner.topology import Fabric, Island, Nic, Node, NvLink, PairLink, Pcie, PcieSwitch, Topology
from probes.emulation.flat import flat_cluster

SAID = Evidence("assumed", "made up for tests")
MODEL = GpuModel("rank", 1e9, 1e9, {"bf16": 1e9}, SAID)


def rate(value: float) -> Rate:
    return Rate(value, SAID)


def own_nics(gpus: int) -> tuple[Nic, ...]:
    return tuple(Nic(rate(1e7), (gpu,), gpu) for gpu in range(gpus))


def cluster(nodes: int, gpus: int, fabric: Fabric | None = None, **parts: Any) -> Topology:
    node = Node((MODEL,) * gpus, **parts)
    return Topology("made-up", (node,) * nodes, fabric or Fabric("none", SAID), "made up")


SWITCH = NvLink("switch", (Island((0, 1), (rate(4e7),) * 2),))
MESH = NvLink("mesh", pairs=tuple(PairLink(pair, rate(1e7)) for pair in ((0, 1), (0, 2), (1, 2))))
PCIE = Pcie(
    (rate(3e7),) * 4,
    (0, 0, 1, 1),
    tuple(PcieSwitch(gpus, rate(2e7), (nic,)) for nic, gpus in enumerate(((0, 1), (2, 3)))),
    rate(1.5e7),
)
TWO_A_LEAF = Fabric("leaf-spine", SAID, nodes_per_leaf=2, oversubscription=2.0)
LEAVES_AND_SPINES = Fabric(
    "leaf-spine", SAID, nodes_per_leaf=1, oversubscription=2.0, nodes_per_pod=2, pod_oversubscription=1.5
)
SHAPES = {
    "switch": flat_cluster(2, 2, 4e7, 1e7),
    "switch of four hosts": cluster(4, 2, nvlink=SWITCH, nics=own_nics(2)),
    "shared NIC": cluster(2, 2, nvlink=SWITCH, nics=(Nic(rate(1e7), (0, 1)),)),
    "NIC pool": cluster(2, 2, nvlink=SWITCH, nics=(Nic(rate(1e7), (0, 1)), Nic(rate(2e7), (0, 1)))),
    "mesh": cluster(1, 3, nvlink=MESH),
    "domain of two nodes": cluster(
        4, 2, Fabric("none", SAID, nvlink_domain_nodes=2), nvlink=SWITCH, nics=own_nics(2)
    ),
    "leaves of two hosts": cluster(4, 2, TWO_A_LEAF, nvlink=SWITCH, nics=own_nics(2)),
    "leaves and spines": cluster(4, 2, LEAVES_AND_SPINES, nvlink=SWITCH, nics=own_nics(2)),
    "rails": cluster(
        2, 2, Fabric("rail", SAID, nodes_per_leaf=2, oversubscription=2.0), nvlink=SWITCH, nics=own_nics(2)
    ),
    "PCIe": cluster(2, 4, pcie=PCIE, nics=tuple(Nic(rate(1e7), gpus) for gpus in ((0, 1), (2, 3)))),
}
