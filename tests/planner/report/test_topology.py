"""Machines as text: the drawing fits and tells the truth, tiers and presets become rows."""

import json
from io import StringIO

import pytest
from hypothesis import given, settings
from rich.console import Console

from planner.base import topology_names
from planner.report.presets import preset_rows, preset_table
from planner.report.topology import draw, tiers_table, topology_report, topology_summary
from planner.topology import Topology, read_topology
from tests.planner.machines import machines, pcie_box, two_by_two


def shown(renderable: object) -> str:
    out = StringIO()
    Console(file=out, width=120).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize("name", topology_names())
def test_every_preset_fits_in_a_hundred_columns(name: str) -> None:
    """At two nodes, with its source and every GPU of a node named."""
    text = draw(read_topology(f"{name}:2"))
    assert max(map(len, text.splitlines())) <= 100
    assert "source:" in text
    assert "gpu0 " in text


@settings(max_examples=40)
@given(machines())
def test_any_machine_can_be_drawn(topology: Topology) -> None:
    """Every GPU of every kind of node appears; the width holds."""
    text = draw(topology)
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"gpu{index}" in text for node in topology.nodes for index in range(len(node.gpus)))


def test_a_small_machine_drawn() -> None:
    """The whole picture of a PCIe box: switch, sockets, the shared NIC, and no NVLink."""
    lines = draw(pcie_box()).splitlines()
    assert lines[0] == "test: 1 node, 4 GPUs, no NVLink"
    assert lines[4:12] == [
        "               gpu0       gpu1       gpu2       gpu3",
        "PCIe        [---------------- 30 GB/s ----------------]",
        "            [----- switch 0 ----]",
        "uplink      [----- 25 GB/s -----]",
        "<-10 GB/s-> [----- socket 0 ----] [----- socket 1 ----]",
        "NIC         [------------------ nic0 -----------------]",
        "each way    [---------------- 12 GB/s ----------------]",
        "            [----------------- rail 0 ----------------]",
    ]


def test_a_drawing_says_what_is_assumed_and_not_known() -> None:
    """The fabric's evidence and reason are in it; so is a link nobody knows."""
    assert "assumed: made up for tests" in draw(two_by_two("rail"))
    assert "the link between sockets" in draw(read_topology("gb200-nvl72"))


def test_tiers_of_a_small_machine() -> None:
    """Two nodes of two: NVLink and node at 400 a GPU, the network at 50, everything assumed."""
    rows = {row.tier: row for row in tiers_table(two_by_two("leaf-spine", oversubscription=2.0))}
    assert rows["NVLink domain"].per_gpu_bytes_per_s == (400e9, 400e9)
    assert rows["network"].per_gpu_bytes_per_s == (50e9, 50e9)
    assert (rows["network"].bisection_bytes_per_s, rows["network"].oversubscription) == (50e9, 2.0)
    assert rows["network"].evidence == ("assumed",)


def test_a_shared_nic_is_divided() -> None:
    """Four GPUs share 12."""
    assert {row.tier: row for row in tiers_table(pcie_box(nodes=2))}["network"].per_gpu_bytes_per_s == (
        3e9,
        3e9,
    )


def test_evidence_is_told_apart() -> None:
    """A preset's network rests on its NICs (preset) and on what is assumed of the fabric: both kinds, weakest
    first, each with its source.
    """
    row = tiers_table(read_topology("hgx-h100:2"))[-1]
    assert row.evidence == ("assumed", "preset")
    assert all(source.startswith(("assumed: ", "preset: ")) for source in row.sources)


def test_the_summary_is_plain_data() -> None:
    """JSON of it holds counts, digest and tiers."""
    data = json.loads(json.dumps(topology_summary(two_by_two())))
    assert (data["nodes"], data["gpus"], data["nvlink_domains"]) == (2, 4, 2)
    assert [tier["tier"] for tier in data["tiers"]] == ["NVLink domain", "node", "network"]


def test_the_report_holds_drawing_tiers_and_method() -> None:
    """What the command prints."""
    text = shown(topology_report(read_topology("hgx-h100:4")))
    assert "NVLink switch" in text
    assert "800 GB/s" in text
    assert "any half, since all units are alike" in text


def test_the_report_of_one_gpu_is_its_drawing() -> None:
    """No tiers, no table."""
    assert "gpu0" in shown(topology_report(read_topology("hgx-h100:1x1")))


def test_presets_as_rows() -> None:
    """One row a preset, rates per GPU; the table names all."""
    names = ["azure-ndv2", "gb200-nvl72", "l40s-pcie"]
    rows = preset_rows(names)
    assert [(row.gpus, row.nvlink, row.nvlink_bytes_per_s) for row in rows] == [
        (8, "mesh of 8", 150e9),
        (72, "switch of 72", 900e9),
        (8, "none", 0),
    ]
    assert [row.network_bytes_per_s for row in rows] == [1.5625e9, 50e9, 6.25e9]
    assert all(name in shown(preset_table(rows)) for name in names)
