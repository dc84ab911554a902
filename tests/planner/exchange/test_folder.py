"""A folder of matrices: what is written from a plan, and what is refused when a result comes back."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.base import BadInput
from planner.cli import main
from planner.exchange import NCCL, PLAN, Run, check_unchanged, gains, hold, read_traffic
from planner.plan import read_plan, write_plan
from planner.problem import TRANSPORTS
from tests.planner.traced import plan_of, trace_file


def moeplan(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for Mixtral on two nodes of two GPUs."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    words = ["--model", "mixtral", "--topology", "hgx-h100:2x2", "--context", "512", "--method", "greedy"]
    assert moeplan("solve", *words, "-o", path).exit_code == 0
    return path


@pytest.fixture(scope="module")
def folder(plan: Path) -> Path:
    """The matrices of its busiest layer."""
    out = plan.with_name("traffic")
    assert moeplan("traffic", plan, "-o", out).exit_code == 0
    return out


@pytest.mark.parametrize("transport", sorted(TRANSPORTS))
def test_every_transport_is_written_with_the_bytes_of_the_cost_model(
    transport: str, plan: Path, tmp_path: Path
) -> None:
    """Hops add up to the phase; the files are within 8 bytes a cell of the model."""
    value = json.loads(plan.read_text())
    value["workload"]["transport"] = transport
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(value))
    assert moeplan("traffic", path, "-o", tmp_path / "out", "--layers", "0,31").exit_code == 0
    traffic = read_traffic(tmp_path / "out", path)
    hops = {"node": 2, "allgather": 2}.get(transport, 1)
    assert len(traffic.exchanges) == 2 * 2 * 2 * hops  # sides, layers, phases
    for one in traffic.exchanges:
        matrix = np.loadtxt(tmp_path / "out" / one.folder / "nccl_matrix.txt", dtype=np.int64)
        assert matrix.shape == (4, 4)
        assert matrix.sum() == one.file_bytes == pytest.approx(one.bytes, abs=8 * matrix.size)
        check_unchanged(traffic, one, NCCL)


def test_the_same_plan_gives_the_same_files(plan: Path, folder: Path, tmp_path: Path) -> None:
    assert moeplan("traffic", plan, "-o", tmp_path / "again").exit_code == 0
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert len(names) == 2 * 2 * 2 + 2  # two formats of two phases and sides, the script, the manifest
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_the_script_runs_each_matrix_and_keeps_the_result_beside_it(folder: Path, tmp_path: Path) -> None:
    """With stand-ins for launcher and benchmark, which print what they were asked."""
    for name in ("alltoallv_perf", "launch"):
        body = 'exec "$@"' if name == "launch" else 'echo "$NCCL_TESTS_ALLTOALLV_MATRIX_FILE $*"'
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LAUNCH": "launch"}
    words = ["bash", str(folder / "run.sh"), NCCL]
    subprocess.run(words, env=environment, check=True, timeout=60, capture_output=True)
    traffic = json.loads((folder / "manifest.json").read_text())
    for one in traffic["exchanges"]:
        result = folder / one["folder"] / "nccl.log"
        size = one["largest_rank_bytes"]
        assert result.read_text().startswith(f"{one['folder']}/nccl_matrix.txt -b {size} -e {size} ")
        result.unlink()


def test_what_was_run_must_be_what_was_written(plan: Path, folder: Path, tmp_path: Path) -> None:
    traffic = read_traffic(folder, plan)
    one = traffic.exchanges[0]
    good = Run("r.log", NCCL, one.largest_rank_bytes, 1e-3, 4)
    assert hold(traffic, one, good).error == one.predicted_seconds / 1e-3 - 1
    with pytest.raises(BadInput, match=r"r\.log: its size is 16 bytes, the matrix of plan/layer-"):
        hold(traffic, one, replace(good, size_bytes=16))
    with pytest.raises(BadInput, match=r"r\.log: ran over 8 ranks, and the plan is for 4 GPUs"):
        hold(traffic, one, replace(good, ranks=8))
    other = tmp_path / "plan.json"
    other.write_text(plan.read_text() + " ")
    with pytest.raises(BadInput, match="are of another plan than"):
        read_traffic(folder, other)
    with pytest.raises(BadInput, match="lies in no folder that `moeplan traffic` wrote"):
        read_traffic(tmp_path, plan)
    changed = replace(one, sha256={**one.sha256, "nccl_matrix.txt": "0"})
    with pytest.raises(BadInput, match=r"nccl_matrix\.txt: it was changed since"):
        check_unchanged(traffic, changed, NCCL)


def test_a_gain_is_of_the_quickest_runs_of_plan_and_default(plan: Path, folder: Path) -> None:
    traffic = read_traffic(folder, plan)
    dispatch = {one.side: one for one in traffic.exchanges if one.phase == "dispatch"}
    held = [
        hold(traffic, one, Run("r.log", NCCL, one.largest_rank_bytes, seconds))
        for side, one in dispatch.items()
        for seconds in ((3e-3, 2e-3) if side == PLAN else (4e-3, 5e-3))
    ]
    (gain,) = gains(held)
    assert (gain.phase, gain.measured) == ("dispatch", 0.5)
    predicted = dispatch["plan"].predicted_seconds / dispatch["default"].predicted_seconds
    assert gain.predicted == pytest.approx(predicted)


@pytest.mark.parametrize("layers", ["99", "1,x", ""])
def test_a_layer_that_the_plan_has_not_is_refused(layers: str, plan: Path, tmp_path: Path) -> None:
    refused = moeplan("traffic", plan, "-o", tmp_path / "out", "--layers", layers)
    assert refused.exit_code == 2
    (line,) = refused.stderr.strip().splitlines()
    assert "is no layer of the plan; give busiest, all, or ids like 0 of its layers 0 to 31" in line
    assert not (tmp_path / "out").exists()


def test_the_manifest_names_the_plan_it_is_of(plan: Path, folder: Path) -> None:
    value = json.loads((folder / "manifest.json").read_text())
    problem = read_plan(plan).problem
    assert (value["ranks"], value["transport"]) == (problem.gpus, problem.workload.transport)
    assert len(value["plan_sha256"]) == 64


def test_the_rows_kept_beside_a_plan_are_what_is_sent(tmp_path: Path) -> None:
    """Not the counts of the plan's load, which know nothing of what is chosen together."""
    path = write_plan(plan_of(trace_file(tmp_path)), tmp_path / "plan.json")
    with_rows = json.loads(_manifest_of(path, tmp_path / "rows"))
    path.with_name("plan.trace.npz").unlink()
    with_counts = json.loads(_manifest_of(path, tmp_path / "counts"))
    assert (with_rows["traced"], with_counts["traced"]) == (True, False)
    assert with_rows["load"] == "plan.trace.npz"


def _manifest_of(plan: Path, out: Path) -> str:
    result = moeplan("traffic", plan, "-o", out, "--layers", "all")
    assert result.exit_code == 0, result.output
    return (out / "manifest.json").read_text()
