"""Raw results as a file: what is read back is what was written."""

from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES, Expected, Timed
from probes.skew.judge import cells_of
from probes.skew.measured import Measured, read_measured, write_measured
from probes.skew.shapes import shape

TOPOLOGY = shape("2x2")
RESOURCES = [one.name for one in TOPOLOGY.resources]


def timed(row: int = 0, busiest: str = "node0/nic0/in") -> Timed:
    """Four ranks, three repeats, one resource that is waited for; rank 1 is the slowest."""
    seconds_R = np.array([1.25 if name == busiest else 0.5 for name in RESOURCES])
    return Timed(
        "plan",
        row,
        row,
        {phase: np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0], [0.5] * 3, [0.5] * 3]) for phase in PHASES},
        Expected(
            modelled=dict.fromkeys(PHASES, 1.5),
            drawn=dict.fromkeys(PHASES, 1.25),
            drawn_R=dict.fromkeys(EXCHANGES, seconds_R),
            start=dict.fromkeys(EXCHANGES, 0.0),
            bytes_GG={phase: np.arange(16.0).reshape(4, 4) for phase in EXCHANGES},
            bytes_per_s_R=dict.fromkeys(EXCHANGES, np.ones(len(RESOURCES))),
            compute_G=np.array([1.0, 2.0, 1.0, 1.0]),
        ),
    )


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    """Every array, and the cells that are made of them."""
    found = Measured("2x2", "slot", ("even", "burst"), (timed(0), timed(1)), "key", "2026-01-01", "two cores")
    write_measured(tmp_path / "deep" / "one.json", found)
    read = read_measured(tmp_path / "deep" / "one.json")
    assert cells_of([read]) == cells_of([found])
    assert read.settings == found.settings
    assert read.timed[1].expected.bytes_GG["combine"].tolist() == np.arange(16.0).reshape(4, 4).tolist()
    assert [cell.measured for cell in cells_of([read])] == [2.0] * 4


def test_another_file_is_refused(tmp_path: Path) -> None:
    """One line, with the file's name."""
    path = tmp_path / "other.json"
    path.write_text('{"schema": "moeplan/plan/1"}')
    with pytest.raises(BadInput, match=r"other\.json: no results of the benchmark of skew"):
        read_measured(path)
