"""Public recordings of fabrics and adapters against the facts known of them.

They are not part of the project: without them the tests are skipped.
"""

from collections import Counter

import pytest

from planner.base import BadInput
from probes.base.facts import FabricFacts, Facts, HostFacts
from probes.fabric.shape import shape_of
from probes.importers import cloud_labels, iblinkinfo, ibnetdiscover, ibstat, slurm, sysfs, topograph
from tests.places import SHARED

FOLDER = SHARED / "data/topology"
MODULES = (cloud_labels, iblinkinfo, ibnetdiscover, ibstat, slurm, sysfs, topograph)
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the public recordings (../shared/data/topology) are not here"
)


def read(name: str) -> tuple[Facts, ...]:
    """By the one importer of ours that recognises it."""
    content = (FOLDER / name).read_bytes()
    (module,) = (module for module in MODULES if module.recognise(content, name))
    facts: tuple[Facts, ...] = module.read(content, name)
    return facts


def fabric(name: str) -> FabricFacts:
    (facts,) = read(name)
    assert isinstance(facts, FabricFacts)
    return facts


def host(name: str) -> HostFacts:
    (facts,) = read(name)
    assert isinstance(facts, HostFacts)
    return facts


def test_large_pod() -> None:
    """40 switches (31 leaves, 9 spines), 582 adapters of which 40 are SHARP, 69 unnamed and 3 'localhost'.

    263 pairs with 2 cables, 6 with 1.
    """
    facts = fabric("ibnetdiscover_topograph_example.txt")
    shape = shape_of(facts)
    assert (len(shape.leaves), len(shape.spines)) == (31, 9)
    assert len(facts.ports) == 582 - 40
    assert "40 aggregation units" in facts.warnings[0]
    assert sum(port.host.startswith("guid:") for port in facts.ports) == 69 + 3
    assert "72 adapters name no host" in facts.unknown[0]
    assert Counter(facts.uplinks.values()) == {2: 263, 1: 6}
    assert len(shape.missing) == 6
    assert all(port.rate_bytes_per_s == 50e9 for port in facts.ports)
    assert (shape.kind, shape.nics_per_host, shape.rail_of_nic) == ("rail", 4, (0, 1, 2, 3))
    assert any("b08-p1-dgx-08-c01" in warning and "another rail" in warning for warning in shape.warnings)


def test_director_fabric() -> None:
    """8 switches, three of them one MCS8500; 10 adapters, 200 Gb/s; three tiers."""
    facts = fabric("ibnetdiscover_superbench.txt")
    shape = shape_of(facts)
    assert sum(map(len, shape.tiers)) == 8
    assert [len(tier) for tier in shape.tiers] == [5, 2, 1]
    assert {name: len(inside) for name, inside in facts.chassis.items()} == {"rmd70-0101-0908-01ib1-A": 3}
    assert len(facts.ports) == 10
    assert {(port.nic, port.rate_bytes_per_s) for port in facts.ports} == {("ibp11s0f0", 25e9)}
    assert facts.unknown == ()


def test_lone_adapter_is_refused() -> None:
    """No switch: the reason is given."""
    with pytest.raises(BadInput, match="and no switch: its port is not connected"):
        read("ibnetdiscover_topograph_bad.txt")


def test_link_table() -> None:
    """One switch with four hosts at 100 Gb/s; the aggregation unit on port 41 is no host."""
    facts = fabric("iblinkinfo_nccltests71.txt")
    assert [(port.host, port.leaf, port.rate_bytes_per_s) for port in facts.ports] == [
        (f"gpu-v100-{n}", "ibswitch254", 12.5e9) for n in range(4)
    ]


def test_ibstat_that_stopped_early() -> None:
    """8 x MT4124 at 200, active; mlx5_8 made ibstat stop."""
    facts = host("ibstat_azure_a100_ibpanic_exit255.txt")
    assert [(nic.name, nic.model, nic.rate_bytes_per_s, nic.up) for nic in facts.nics] == [
        (f"mlx5_{n}", "MT4124", 25e9, True) for n in range(8)
    ]
    assert any("mlx5_8" in sentence for sentence in facts.unknown)


def test_ibstat_with_ports_down() -> None:
    """12 adapters in text order.

    6 x 400 and 4 x 100 active, mlx5_11 polling, mlx5_5 disabled (both without a rate).
    """
    facts = host("ibstat_h100_roce_some_down.txt")
    assert [nic.name for nic in facts.nics] == [f"mlx5_{n}" for n in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)]
    assert Counter(nic.rate_bytes_per_s for nic in facts.nics) == {50e9: 6, 12.5e9: 4, None: 2}
    faults = {nic.name: nic.faults[0] for nic in facts.nics if nic.faults}
    assert faults == {
        "mlx5_11": "mlx5_11: the port is not active (Down, Polling)",
        "mlx5_5": "mlx5_5: the port is not active (Down, Disabled)",
    }
    assert sum(nic.compute is False for nic in facts.nics) == 4


def test_ibstatus_with_a_front_end() -> None:
    """8 x 200 HDR InfiniBand, and mlx5_8 at 40 Ethernet that is not for expert traffic."""
    facts = host("ibstatus_azure_a100_9dev.txt")
    assert Counter((nic.rate_bytes_per_s, nic.link_layer, nic.compute) for nic in facts.nics) == {
        (25e9, "InfiniBand", None): 8,
        (5e9, "Ethernet", False): 1,
    }


def test_names_and_guids() -> None:
    """Not ibstat itself: ten pairs of host name and GUID, each of an adapter in the director fabric."""
    facts = read("ibstat_superbench_multi.txt")
    guids = {nic.guid for one in facts if isinstance(one, HostFacts) for nic in one.nics}
    assert len(facts) == 10
    assert guids == {port.guid for port in fabric("ibnetdiscover_superbench.txt").ports}


def test_sysfs_of_a_host() -> None:
    """8 x 400 (4X NDR) InfiniBand and a bond of 200 (2X NDR) Ethernet."""
    facts = host("sysfs_infiniband_h100_gpud.tar.gz")
    assert Counter((nic.rate_bytes_per_s, nic.link_layer, nic.up, nic.compute) for nic in facts.nics) == {
        (50e9, "InfiniBand", True, None): 8,
        (25e9, "Ethernet", True, False): 1,
    }
    assert facts.nics[-1].name == "mlx5_bond_0"


@pytest.mark.parametrize(
    ("name", "tiers", "hosts_per_leaf"),
    [
        ("slurm_test133_case1.conf", [500, 26, 2, 1], 20),
        ("slurm_test133_case3.conf", [20, 2, 1], 20),
        ("slurm_test133_case5.conf", [20, 2], 20),
        ("slurm_topograph_tree.conf", [12, 6, 1], 8),
        ("slurm_man_topology.yaml", [2, 1], 2),
        ("topograph_model_nvl72.yaml", [4, 2, 1], 18),
        ("aws_k8s_node_topology.json", [3, 2, 1], 1),
    ],
)
def test_trees(name: str, tiers: list[int], hosts_per_leaf: int) -> None:
    """Switches tier by tier, and hosts on every leaf; no rate from any of them."""
    facts = fabric(name)
    shape = shape_of(facts)
    assert [len(tier) for tier in shape.tiers] == tiers
    assert set(shape.hosts_by_leaf.values()) == {hosts_per_leaf}
    assert len(shape.hosts) == tiers[0] * hosts_per_leaf
    assert not facts.uplink_bytes_per_s
    assert bool(shape.unreachable) == (name == "slurm_test133_case5.conf")


def test_blocks() -> None:
    """12 racks of 8 with sizes 8, 16, 32; 4 NVLink domains of 18 hosts.

    Several topologies in one file, the default taken.
    """
    slurm_blocks = fabric("slurm_topograph_block.conf")
    assert Counter(map(len, slurm_blocks.blocks.values())) == {8: 12}
    assert slurm_blocks.block_sizes == (8, 16, 32)
    assert Counter(map(len, fabric("topograph_model_nvl72.yaml").blocks.values())) == {18: 4}
    assert "of 6 topologies 'topo1' is taken" in fabric("slurm_man_topology.yaml").warnings[0]


def test_nothing_else_is_recognised() -> None:
    """Recordings of other kinds are not taken for one of ours."""
    ours = ("ib", "slurm", "sysfs", "topograph", "aws_k8s")
    others = [path for path in sorted(FOLDER.iterdir()) if not path.name.startswith(ours)]
    assert [
        path.name for path in others for module in MODULES if module.recognise(path.read_bytes(), path.name)
    ] == []
