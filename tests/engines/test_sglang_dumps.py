"""Dumps that SGLang 0.5.23's own recorder wrote, read back: the counts and the trace are what it was handed.

Runs where MOEPLAN_SGLANG_PYTHON names an interpreter that has SGLang (the CPU is enough);
`sglang_recorder.py` is what it runs.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from planner.load import read_load
from tests.planner.load.dumps.files import MAP_LP, MODEL, counted, routed, slots_of

PYTHON = os.environ.get("MOEPLAN_SGLANG_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_SGLANG_PYTHON names no interpreter with SGLang 0.5.23"
)
IDS = {(rank, number): routed(5, seed=10 * rank + number) for rank in (0, 1) for number in range(3)}


def record(folder: Path, mode: str, ranks: int, buffer: int) -> list[Path]:
    """The files that the engine's recorder leaves for three forward passes of each rank."""
    passes = [
        [slots_of(IDS[rank, number], seed=number).tolist() for number in range(3)] for rank in range(ranks)
    ]
    request = json.dumps({"experts": 4, "map": MAP_LP, "buffer": buffer, "passes": passes})
    script = Path(__file__).with_name("sglang_recorder.py")
    done = subprocess.run(
        [PYTHON, str(script), str(folder), mode],
        input=request,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("buffer", "windows"),
    [(5, [0, 1, 2]), (2, [2, 1]), (-1, [0, 1, 2])],
    ids=["room to spare", "wrapped", "infinite"],
)
def test_stat(tmp_path: Path, buffer: int, windows: list[int]) -> None:
    """Logical counts a pass; a buffer of two steps keeps the last two of three, the newest first, and that is
    noted.
    """
    load = read_load(record(tmp_path, "stat", 1, buffer), MODEL)
    assert load.tokens_WLE.tolist() == [counted(IDS[0, number]).tolist() for number in windows]
    assert any("wrapped around" in note for note in load.notes) == (buffer != 5)


@pytest.mark.parametrize("mode", ["per_pass", "per_token"])
def test_detail(tmp_path: Path, mode: str) -> None:
    """Two ranks' files, slots under a map with redundancy: sums by expert, and in per_token mode the ids
    themselves.
    """
    files = record(tmp_path, mode, 2, 5)
    assert len(files) == 2
    load = read_load(files, MODEL)
    assert load.tokens_WLE.tolist() == [
        (counted(IDS[0, number]) + counted(IDS[1, number])).tolist() for number in range(3)
    ]
    if mode == "per_token":
        assert load.trace is not None
        ids_TLK = np.concatenate([IDS[rank, number] for number in range(3) for rank in (0, 1)])
        assert np.array_equal(load.trace.experts_LTK, ids_TLK.transpose(1, 0, 2)[1:])
