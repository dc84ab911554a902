"""From files to one machine, and what is said where they show none."""

import json
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.topology import read_topology
from probes.base.facts import MeasureFacts, Sample
from probes.machine.hints import Hints
from probes.measure.file import Measurement, write_measurement
from probes.survey.from_files import find, import_files, parse_nic

PAIR = (
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\nGPU0\t X "
    "\tNV18\tPIX\tSYS\t0-31\t0\nGPU1\tNV18\t X \tSYS\tPIX\t32-63\t1\n"
    "NIC0\tPIX\tSYS\t X \tSYS\t\t\nNIC1\tSYS\tPIX\tSYS\t X \t\t\n\nLegend:\n\n  X    = Self\n\nNIC "
    "Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
)


def measured(ranks: int = 4) -> MeasureFacts:
    samples = tuple(
        Sample(size, size / 12.5e6, 12.5e6, 9.375e6, 9.375e6, in_place=False)
        for size in (1 << 20, 1 << 21, 1 << 22)
    )
    return MeasureFacts("made up", "torch-gloo", "alltoall", ranks, samples=samples)


@pytest.fixture
def paste(tmp_path: Path) -> Path:
    path = tmp_path / "topo.txt"
    path.write_text(PAIR)
    return path


def test_a_paste_alone_shows_counts_and_says_what_it_lacks(paste: Path) -> None:
    """Two GPUs, one domain, the NIC beside each; no topology, and the flag that would help."""
    found = import_files([paste], Hints())
    assert (found.machine.gpus, found.machine.nvlink_domains, found.machine.nics) == (2, ((0, 1),), 2)
    assert found.machine.affinity == {0: ("NIC0",), 1: ("NIC1",)}
    with pytest.raises(BadInput, match="--gpu"):
        _ = found.topology


def test_with_hints_it_is_a_machine_to_plan_for(paste: Path, tmp_path: Path) -> None:
    """The file that is written reads back as the same topology, for as many hosts as stated."""
    found = import_files([paste], Hints(gpu="H100-SXM", nic_bytes_per_s=50e9, nodes=3))
    assert (found.topology.gpu_count, found.topology.node_count, found.topology.domain_count) == (6, 3, 3)
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(found.topology.to_dict()))
    assert read_topology(str(path)) == found.topology


def test_a_benchmark_alone_counts_its_ranks_and_says_so(tmp_path: Path) -> None:
    """No GPU is shown; ranks are a lower bound, not a machine."""
    found = import_files(
        [write_measurement(Measurement("2026-01-15T09:30:00Z", (measured(),)), tmp_path / "m.json")], Hints()
    )
    assert (found.machine.gpus, found.machine.nvlink_domains, found.machine.topology) == (4, (), None)
    assert "may have more" in found.machine.unknown[0]
    shown = found.to_dict()["measurements"][0]
    assert shown["ranks"] == 4
    assert shown["fit"]["bytes_per_s"] == pytest.approx(12.5e6)
    assert found.fits[0][1].startswith("12.5 MB/s after")
    assert "2026-01-15" in found.measured[0].source


def test_busbw_and_wire_rate_stand_side_by_side() -> None:
    """The header, then a row a size, the benchmark named once."""
    header, *rows = find([measured()], Hints()).measured_rows
    assert header[:4] == ("benchmark", "size", "time", "busbw")
    assert [bool(row[0]) for row in rows] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("400G", 50e9), ("100 g", 12.5e9), ("25 GB/s", 25e9), ("200 Gb/s", 25e9), (None, None)],
)
def test_nic_rates_as_people_write_them(text: str | None, bytes_per_s: float | None) -> None:
    """NICs are sold in Gbit/s."""
    assert parse_nic(text) == bytes_per_s


@pytest.mark.parametrize("text", ["fast", "", "400", "-400G", "400GB"])
def test_a_nic_rate_that_is_none_is_refused(text: str) -> None:
    """A number without a unit could be either."""
    with pytest.raises(BadInput):
        parse_nic(text)


@pytest.mark.parametrize(
    "damage",
    ['"schema": "moeplan/measure/2"', '"taken": 5', '"facts": {}', '"ranks": "four"', '"ranks": 1e400'],
)
def test_a_damaged_measurement_is_one_line(damage: str, tmp_path: Path) -> None:
    """Version, type and range are checked; nothing else ever leaves the reader."""
    path = write_measurement(Measurement("2026-01-15T09:30:00Z", (measured(),)), tmp_path / "m.json")
    key = damage.split(":", maxsplit=1)[0]
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join(
            f"{damage}," if line.strip().startswith(key) and "[" not in line else line for line in lines
        )
    )
    if path.read_text().splitlines() == lines:  # 'facts' opens a list: break its bracket instead
        path.write_text(path.read_text().replace('"facts": [', '"facts": ', 1))
    with pytest.raises(BadInput):
        import_files([path], Hints())
