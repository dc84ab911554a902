"""Every shipped machine loads, scales, says where its figures are from, and adds up to what is published."""

import re
from functools import cache

import pytest

from planner.base import data_file, read_yaml, topologies_folder, topology_names
from planner.topology import Topology, gpu_model, read_topology, topology_from_dict
from tests.places import SHARED

NAMES = topology_names()

# GPUs and domain of one node or rack; GB/s per GPU and direction over NVLink and to the network: line rates
# of the vendors' and providers' tables.
PUBLISHED = {
    "dgx-1v": (8, 8, 150, 6.25),
    "dgx-2": (16, 16, 150, 6.25),
    "dgx-a100": (8, 8, 300, 25),
    "hgx-a800": (8, 8, 200, 25),
    "hgx-h100": (8, 8, 450, 50),
    "hgx-h200": (8, 8, 450, 50),
    "hgx-h20": (8, 8, 450, 50),
    "hgx-h800": (8, 8, 200, 50),
    "hgx-b200": (8, 8, 900, 50),
    "hgx-b300": (8, 8, 900, 100),
    "gb200-nvl72": (72, 72, 900, 50),
    "gb300-nvl72": (72, 72, 900, 100),
    "aws-p4d": (8, 8, 300, 6.25),
    "aws-p5": (8, 8, 450, 50),
    "aws-p5en": (8, 8, 450, 50),
    "aws-p6-b200": (8, 8, 900, 50),
    "aws-p6-b300": (8, 8, 900, 100),
    "azure-ndv2": (8, 8, 150, 1.5625),
    "azure-nd-a100-v4": (8, 8, 300, 25),
    "azure-nd-h100-v5": (8, 8, 450, 50),
    "azure-nc96ads-a100-v4": (4, 2, 300, 3.125),
    "gcp-a3-high": (8, 8, 450, 12.5),
    "gcp-a3-mega": (8, 8, 450, 25),
    "gcp-a3-ultra": (8, 8, 450, 50),
    "gcp-a4": (8, 8, 900, 50),
    "gcp-a4x": (72, 72, 900, 50),
    "oci-a100": (8, 8, 300, 25),
    "oci-h100": (8, 8, 450, 50),
    "oci-gb300": (72, 72, 900, 100),
    "l40s-pcie": (8, 1, 0, 6.25),
    "rtx-pro-6000-pcie": (8, 1, 0, 25),
}


@cache
def preset(name: str) -> Topology:
    return read_topology(name)


def test_there_are_enough() -> None:
    """At least 28 machines, those of the table among them."""
    assert len(NAMES) >= 28
    assert set(PUBLISHED) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_sound(name: str) -> None:
    """The file's name is its own.

    Resources have unique names and positive rates; every figure has a kind that a preset may have, and a
    source.
    """
    topology = preset(name)
    assert topology.name == name
    assert topology.source
    assert len({resource.name for resource in topology.resources}) == len(topology.resources)
    assert (topology.capacity_R > 0).all()
    assert {resource.rate.evidence.kind for resource in topology.resources} <= {"preset", "assumed"}


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_scales(name: str) -> None:
    """Two nodes of every preset reach each other, and read back from plain data."""
    double = read_topology(f"{name}:2")
    assert double.node_count == 2
    assert double.route(0, double.gpu_count - 1)
    assert topology_from_dict(double.to_dict()) == double


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_file_is_drawn_and_plain(name: str) -> None:
    """A drawing in comments at the top, no aliases or tags, nothing wider than our lines.

    What is assumed says why.
    """
    text = (topologies_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == f"# {name}"
    assert sum(line.startswith("#") for line in lines) >= 4
    assert text.isascii()
    assert not re.search(
        r"(^|[\s:\[,])[&*!]\w", "\n".join(line for line in lines if not line.startswith("#"))
    )
    assert max(map(len, lines)) <= 240
    assert all(re.search(r"source: .{8,}", line) for line in lines if "evidence: assumed," in line)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_adds_up_to_the_published_totals(name: str) -> None:
    """GPUs, domain, NVLink per GPU and NIC rate per GPU against a table kept apart from the files."""
    topology = preset(name)
    gpus, domain, nvlink, network = PUBLISHED[name]
    assert topology.gpu_count == gpus
    assert int((topology.domain_G == 0).sum()) == domain
    out = [
        resource
        for resource in topology.resources
        if resource.tier == "nvlink" and resource.tail == "node0/gpu0"
    ]
    assert sum(resource.rate.bytes_per_s for resource in out) == nvlink * 1e9
    first = topology.nodes[0]
    assert sum(nic.rate.bytes_per_s for nic in first.nics) / len(first.gpus) == network * 1e9


LISTINGS = SHARED / "data/topology"


@pytest.mark.skipif(
    not LISTINGS.is_dir(), reason="no public listings beside the checkout to compare the DGX-1V mesh with"
)
def test_the_dgx1v_mesh_is_that_of_a_public_listing() -> None:
    """NV1 and NV2 of 'nvidia-smi topo -m' are one and two lanes of 25 GB/s, and every other pair has no
    direct link.
    """
    topology = preset("dgx-1v")
    rows = (LISTINGS / "topo_dgx1v_4ib_msccl.txt").read_text(encoding="utf-8").splitlines()[1:9]
    for i, row in enumerate(rows):
        for j, cell in enumerate(row.split()[1:9]):
            first = topology.resources[topology.route(i, j)[0]] if i != j else None
            lanes = first.rate.bytes_per_s / 25e9 if first and first.tier == "nvlink" else 0
            assert lanes == (int(cell[2:]) if cell.startswith("NV") else 0)


def test_gpu_figures_are_ordered_as_the_hardware_is() -> None:
    """Of shipped GPU models fp8 is twice bf16; none before Ada and Hopper has fp8; each names a source."""
    before = ("A", "V100", "T4", "Titan", "Quadro", "RTX-A", "GeForce-RTX-30")
    for name in read_yaml(data_file("gpus.yaml")):
        model = gpu_model(name)
        flops = model.flops_per_s
        assert ("fp8" in flops) == (not name.startswith(before))
        assert "fp8" not in flops or flops["fp8"] == pytest.approx(2 * flops["bf16"], rel=0.02)
        assert 10e9 < model.memory_bytes < 300e9
        assert 0.19e12 < model.memory_bytes_per_s < 10e12
        assert model.evidence.source
