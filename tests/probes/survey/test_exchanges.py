"""Results of a plan's matrices, as nccl-tests and ucc_perftest would print them, beside the prediction."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.exchange import Written, read_traffic
from tests.probes.importers.test_ucc_perftest import END, SHORT

HOSTS = ("host0", "host0", "host1", "host1")


def moeplan(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def nccl_log(one: Written, seconds: float, hosts: tuple[str, ...] = HOSTS, program: str = "alltoallv") -> str:
    """As src/common.cu of 2.19.6 prints a run of a matrix: its count is 0, its size the busiest rank's."""
    size = one.largest_rank_bytes
    algbw = size / seconds / 1e9
    half = f"{seconds * 1e6:7.2f}  {algbw:6.2f}  {algbw * 3 / 4:6.2f}"
    lines = [f"# Collective test starting: {program}_perf", "# Using devices"]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid {4000 + rank} on {host:>10} device {rank % 2:2} "
        f"[0000:{rank + 1:02x}:00] NVIDIA H100 80GB HBM3"
        for rank, host in enumerate(hosts)
    ]
    lines += [
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
        f"{size:12}  {0:12}     float    none      -1  {half}       0  {half}    N/A",
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {algbw * 3 / 4:.4f}",
    ]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    words = ["--model", "mixtral", "--topology", "hgx-h100:2x2", "--context", "512", "--method", "greedy"]
    assert moeplan("solve", *words, "-o", path).exit_code == 0
    return path


@pytest.fixture
def folder(plan: Path, tmp_path: Path) -> Path:
    assert moeplan("traffic", plan, "-o", tmp_path / "traffic").exit_code == 0
    return tmp_path / "traffic"


def refusal(*words: object) -> str:
    refused = moeplan(*words)
    assert refused.exit_code == 2, refused.output
    (line,) = refused.stderr.strip().splitlines()
    return line


def test_every_result_of_a_folder_is_held_to_its_matrix(plan: Path, folder: Path) -> None:
    """nccl-tests ran the dispatch of both sides, UCC the plan's combine."""
    every = {(one.side, one.phase): one for one in read_traffic(folder, plan).exchanges}
    for side, seconds in (("plan", 1e-3), ("default", 2e-3)):
        one = every[side, "dispatch"]
        (folder / one.folder / "nccl.log").write_text(nccl_log(one, seconds))
    one = every["plan", "combine"]
    row = f"{one.rank_0_bytes // 4:12}{one.rank_0_bytes:12}{900.00:12.2f}{800.00:12.2f}{1000.00:12.2f}\n"
    (folder / one.folder / "ucc.log").write_text(f"{SHORT}{row}{END}")
    found = json.loads(moeplan("traffic", plan, "--measured", folder, "--json").stdout)
    measured = {
        (one["side"], one["phase"], one["tool"]): one["measured_seconds"] for one in found["exchanges"]
    }
    assert measured == {
        ("plan", "dispatch", "nccl-tests"): pytest.approx(1e-3),
        ("default", "dispatch", "nccl-tests"): pytest.approx(2e-3),
        ("plan", "combine", "ucc_perftest"): pytest.approx(1e-3),
    }
    (gain,) = found["plan_over_default"]
    predicted = [every[side, "dispatch"].predicted_seconds for side in ("plan", "default")]
    assert (gain["measured"], gain["predicted"]) == pytest.approx((0.5, predicted[0] / predicted[1]))
    text = moeplan("traffic", plan, "--measured", folder).stdout
    assert "dispatch, nccl-tests: the plan takes 0.500 of the default's time, predicted" in text


def test_the_json_of_nccl_tests_is_read_as_well(plan: Path, folder: Path) -> None:
    one = read_traffic(folder, plan).exchanges[0]
    size, seconds = one.largest_rank_bytes, 1e-3
    half = {"time": seconds * 1e6, "alg_bw": size / seconds / 1e9, "bus_bw": size / seconds / 1e9 * 3 / 4}
    value = {
        "args": ["alltoallv_perf"],
        "nccl_version": 23007,
        "results": [{"size": size, "count": 0, "type": "float", "redop": "none", "out_of_place": half}],
        "average_bus_bandwidth": {"bandwidth": half["bus_bw"]},
        "end_time": "2026-12-01",
    }
    (folder / one.folder / "nccl.json").write_text(json.dumps(value))
    found = json.loads(moeplan("traffic", plan, "--measured", folder, "--json").stdout)
    assert [each["measured_seconds"] for each in found["exchanges"]] == [pytest.approx(seconds)]


def test_what_did_not_run_the_matrix_is_refused(plan: Path, folder: Path, tmp_path: Path) -> None:
    one = read_traffic(folder, plan).exchanges[0]
    here = folder / one.folder / "nccl.log"
    assert "no result there; run the matrices first" in refusal("traffic", plan, "--measured", folder)
    here.write_text(nccl_log(one, 1e-3, hosts=("host0", "host1", "host0", "host1")))
    assert "its ranks go back and forth between hosts" in refusal("traffic", plan, "--measured", here)
    here.write_text(nccl_log(one, 1e-3, hosts=HOSTS[:2]))
    assert "ran over 2 ranks, and the plan is for 4 GPUs" in refusal("traffic", plan, "--measured", here)
    here.write_text(nccl_log(one, 1e-3, program="alltoall"))
    assert "is the result of alltoall; a matrix is run by" in refusal("traffic", plan, "--measured", here)
    astray = folder / "nccl.log"
    astray.write_text(nccl_log(one, 1e-3))
    assert "lies beside no matrix of" in refusal("traffic", plan, "--measured", astray)


def test_a_command_writes_or_reads(plan: Path, tmp_path: Path) -> None:
    both = moeplan("traffic", plan, "-o", tmp_path, "--measured", tmp_path)
    assert (both.exit_code, moeplan("traffic", plan).exit_code) == (2, 2)
    assert "give -o FOLDER to write matrices, or --measured" in both.stderr
