"""Machines small enough to check by hand, and a strategy for random ones. Rates are in GB/s."""

from collections.abc import Sequence
from itertools import combinations

from hypothesis import strategies as st

from planner.base import Evidence, GpuModel, Rate
from planner.topology import (
    Fabric,
    Island,
    Nic,
    Node,
    NvLink,
    PairLink,
    Pcie,
    PcieSwitch,
    Topology,
    gpu_model,
)

BY_HAND = Evidence("assumed", "made up for tests")
GPU = GpuModel("test-gpu", 80e9, 3e12, {"bf16": 1e15, "fp8": 2e15}, BY_HAND)


def rate(gigabytes_per_s: float, kind: str = "assumed") -> Rate:
    return Rate(gigabytes_per_s * 1e9, Evidence(kind, "made up for tests"))


def switched(*islands: Sequence[int], gigabytes_per_s: float = 400) -> NvLink:
    return NvLink(
        "switch", tuple(Island(tuple(gpus), (rate(gigabytes_per_s),) * len(gpus)) for gpus in islands)
    )


def flat_pcie(gpus: int, gigabytes_per_s: float = 60) -> Pcie:
    return Pcie((rate(gigabytes_per_s),) * gpus, (0,) * gpus)


def own_nics(gpus: int, gigabytes_per_s: float = 50) -> tuple[Nic, ...]:
    """One NIC for each GPU, on the rail of its index."""
    return tuple(Nic(rate(gigabytes_per_s), (gpu,), gpu) for gpu in range(gpus))


def machine(node: Node, nodes: int = 1, kind: str = "none", **fabric: float) -> Topology:
    network = Fabric(kind, BY_HAND, **fabric)  # type: ignore[arg-type]
    return Topology("test", (node,) * nodes, network, "made up for tests")


def two_by_two(kind: str = "none", nodes: int = 2, **fabric: float) -> Topology:
    """Two nodes of two GPUs: NVLink 400, PCIe 60, a NIC of 50 for each GPU."""
    return machine(Node((GPU, GPU), switched([0, 1]), flat_pcie(2), own_nics(2)), nodes, kind, **fabric)


def two_chips() -> Topology:
    """A node of two A100s and one of two H100s, whose constants differ."""
    nodes = tuple(
        Node((gpu_model(name),) * 2, switched([0, 1]), flat_pcie(2), own_nics(2))
        for name in ("A100-SXM-80GB", "H100-SXM-80GB")
    )
    return Topology("test", nodes, Fabric("none", BY_HAND), "made up for tests")


def pcie_box(nodes: int = 1) -> Topology:
    """Four GPUs, no NVLink.

    Two below a PCIe switch on socket 0 with the one NIC, two straight on socket 1.
    """
    pcie = Pcie((rate(30),) * 4, (0, 0, 1, 1), (PcieSwitch((0, 1), rate(25), (0,)),), rate(10))
    return machine(Node((GPU,) * 4, pcie=pcie, nics=(Nic(rate(12), (0, 1, 2, 3)),)), nodes)


def names(topology: Topology, path: Sequence[int]) -> list[str]:
    return [topology.resources[index].name for index in path]


@st.composite
def _nodes(draw: st.DrawFn, domain_nodes: int) -> Node:
    count = draw(st.integers(1, 5))
    gpus = list(range(count))
    kind = "switch" if domain_nodes > 1 else draw(st.sampled_from(["none", "switch", "islands", "mesh"]))
    nvlink = NvLink()
    if kind == "switch" or (kind == "islands" and count < 3):
        joined = draw(st.lists(st.sampled_from(gpus), min_size=1, unique=True))
        nvlink = switched(sorted(joined))
    elif kind == "islands":
        nvlink = switched(gpus[:1], gpus[1:3])
    elif kind == "mesh" and count > 1:
        pairs = draw(st.lists(st.sampled_from(list(combinations(gpus, 2))), min_size=1, unique=True))
        nvlink = NvLink("mesh", pairs=tuple(PairLink(pair, rate(draw(st.integers(1, 50)))) for pair in pairs))
    shared = draw(st.booleans())
    rails = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    nics = (
        (Nic(rate(25), tuple(gpus), rails[0]),)
        if shared
        else tuple(Nic(rate(25), (gpu,), rails[gpu]) for gpu in gpus for _ in range(2))
    )
    return Node((GPU,) * count, nvlink, draw(_pcie(count, len(nics))), nics)


@st.composite
def _pcie(draw: st.DrawFn, gpus: int, nics: int) -> Pcie:
    socket_of = draw(st.lists(st.integers(0, 1), min_size=gpus, max_size=gpus))
    switches = []
    for socket in (0, 1):
        below = tuple(gpu for gpu in range(gpus) if socket_of[gpu] == socket)
        cut = draw(st.integers(0, len(below)))
        cards = tuple(nic for nic in range(nics) if nic % 2 == socket)
        groups = draw(st.sampled_from([[], [below[:cut]], [below[:cut], below[cut:]]]))
        switches += [
            PcieSwitch(group, rate(20), cards if first else ())
            for first, group in zip((True, False), groups, strict=False)
            if group
        ]
    known = draw(st.booleans())
    return Pcie((rate(30),) * gpus, tuple(socket_of), tuple(switches), rate(10) if known else None)


@st.composite
def machines(draw: st.DrawFn) -> Topology:
    """Up to four unequal nodes with every kind of NVLink, shared and pooled NICs, leaves, rails and pods.

    Every pair of GPUs has a route.
    """
    span = draw(st.sampled_from([1, 1, 2]))
    nodes = tuple(draw(st.lists(_nodes(span), min_size=1, max_size=4)))
    kind = draw(st.sampled_from(["none", "leaf-spine", "rail"]))
    per_leaf = draw(st.integers(1, 2))
    pods = (
        {"nodes_per_pod": 2 * per_leaf, "pod_oversubscription": 3.0}
        if kind != "none" and draw(st.booleans())
        else {}
    )
    oversubscription = draw(st.sampled_from([1.0, 2.0]))
    fabric = Fabric(kind, BY_HAND, per_leaf, oversubscription, span, **pods)  # type: ignore[arg-type]
    return Topology("random", nodes, fabric, "made up for tests")
