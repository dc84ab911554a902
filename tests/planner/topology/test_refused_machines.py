"""Machines that cannot be are refused with the place and the value."""

from dataclasses import replace
from typing import Any

import pytest

from planner.base import BadInput, Evidence, GpuModel
from planner.topology import Fabric, Island, Nic, Node, NvLink, PairLink, Pcie, PcieSwitch, Topology
from tests.planner.machines import BY_HAND, GPU, flat_pcie, machine, own_nics, rate, switched


def test_more_gpus_than_we_plan_for() -> None:
    """65,537 GPUs are refused with the limit in the message."""
    with pytest.raises(BadInput, match="65,536"):
        machine(Node((GPU,)), 65_537)


def test_a_domain_of_nodes_needs_switches() -> None:
    """nvlink_domain_nodes without NVLink switches is a contradiction."""
    with pytest.raises(BadInput, match="NVLink domain of 2 nodes"):
        machine(Node((GPU,), nics=own_nics(1)), 2, nvlink_domain_nodes=2)


def test_one_name_for_two_gpu_models_is_refused() -> None:
    """A name means one set of figures."""
    other = replace(GPU, memory_bytes=1.0)
    with pytest.raises(BadInput, match="two sets of figures"):
        machine(Node((GPU, other), switched([0, 1])))


BAD_NODES: dict[str, tuple[dict[str, Any], str]] = {
    "island twice": (
        {"nvlink": NvLink("switch", (Island((0, 0), (rate(1),) * 2),))},
        "GPU 0 is listed twice",
    ),
    "island of a stranger": ({"nvlink": switched([0, 2])}, "no GPU 2"),
    "island rates": ({"nvlink": NvLink("switch", (Island((0, 1), (rate(1),)),))}, "has 1 rates"),
    "empty island": ({"nvlink": NvLink("switch", (Island((), ()),))}, "lists no GPU"),
    "switch without islands": ({"nvlink": NvLink("switch")}, "goes with islands"),
    "unknown kind": ({"nvlink": NvLink("ring")}, "not one of none, switch, mesh, bridge"),
    "pair twice": (
        {"nvlink": NvLink("mesh", pairs=(PairLink((0, 1), rate(1)), PairLink((1, 0), rate(1))))},
        "listed twice under NVLink",
    ),
    "pair with itself": (
        {"nvlink": NvLink("mesh", pairs=(PairLink((1, 1), rate(1)),))},
        "GPU 1 is listed twice",
    ),
    "pcie rates": ({"pcie": flat_pcie(3)}, "2 GPUs need 2 PCIe rates"),
    "switch over sockets": (
        {"pcie": Pcie((rate(1),) * 2, (0, 1), (PcieSwitch((0, 1), rate(1)),))},
        "spans several sockets",
    ),
    "switch of no nic": (
        {"pcie": Pcie((rate(1),) * 2, (0, 0), (PcieSwitch((0,), rate(1), (4,)),))},
        "no NIC 4",
    ),
    "negative socket": ({"pcie": Pcie((rate(1),) * 2, (0, -1))}, "socket -1"),
    "nic of nobody": ({"nics": (Nic(rate(1), ()),)}, "lists no GPU"),
    "nic in two pools": (
        {"nics": (Nic(rate(1), (0,)), Nic(rate(1), (0, 1)))},
        "GPU 0 uses NICs that serve different GPUs",
    ),
    "pool on two rails": ({"nics": (Nic(rate(1), (0,), 0), Nic(rate(1), (0,), 1))}, "several rails"),
    "negative rail": ({"nics": (Nic(rate(1), (0,), -1),)}, "rail -1"),
    "too many nics": ({"nics": (Nic(rate(1), (0,)),) * 257}, "257 NICs"),
    "no gpus": ({"gpus": ()}, "0 GPUs"),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_contradictions_in_a_node_are_refused(case: str) -> None:
    """Each contradiction has its own line."""
    changes, message = BAD_NODES[case]
    with pytest.raises(BadInput, match=message):
        Node(**{"gpus": (GPU, GPU), **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rate(0), "cannot be used"),
        (lambda: rate(float("nan")), "cannot be used"),
        (lambda: rate(float("inf")), "cannot be used"),
        (lambda: Evidence("guessed", "x"), "not one of measured"),
        (lambda: Evidence("preset", " "), "names no source"),
        (lambda: GpuModel("g", 1.0, -1.0, {"bf16": 1.0}, BY_HAND), "memory_bytes_per_s is -1.0"),
        (lambda: GpuModel("g", 1.0, 1.0, {}, BY_HAND), "neither a bf16 nor an fp16"),
        (lambda: Fabric("ring", BY_HAND), "fabric kind 'ring'"),
        (lambda: Fabric("rail", BY_HAND, 0), "nodes_per_leaf 0"),
        (lambda: Fabric("rail", BY_HAND, 2, 0.5), "oversubscription is 0.5"),
        (lambda: Fabric("rail", BY_HAND, 2, nodes_per_pod=3), "multiple of nodes_per_leaf"),
        (lambda: Topology("empty", (), Fabric("none", BY_HAND), "x"), "has no nodes"),
    ],
)
def test_figures_that_cannot_be_are_refused(make: Any, message: str) -> None:
    """Zero, NaN, negative, unknown words: one line each."""
    with pytest.raises(BadInput, match=message):
        make()
