"""Measuring: with a fake alltoall_perf, with real processes over gloo, on an emulated cluster.

The fake has every way to end; the cluster's rates must come out.
"""

import importlib.util
import json
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput, Evidence, GpuModel, Rate
from planner.topology import Fabric, Island, Nic, Node, NvLink, Topology
from probes.base.facts import MeasureFacts, Sample
from probes.collective import run as collective
from probes.collective.job import MeasureJob, Sweep, load, measured, save, scopes
from probes.collective.nccl_tests import find_alltoall_perf
from probes.emulation.cluster import Ended
from probes.emulation.flat import flat_cluster
from probes.emulation.namespaces import emulated, unavailable
from probes.measure.apply import apply_measurement
from probes.measure.busbw import bisection_bytes_per_s, host_shares
from probes.measure.fit import fit_facts
from tests.places import ROOT

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
NO_CLUSTER = unavailable()
needs_namespaces = pytest.mark.skipif(
    NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"
)

SWEEP = Sweep(8 << 20, 64 << 20)
FAKE = r"""#!{python}
# Stands for alltoall_perf: 4 GPUs at 40 GB/s of algbw. What it does wrong is in the variable FAKE.
import json, os, sys, time
mode, args = os.environ.get("FAKE", ""), sys.argv[1:]
if args == ["-h"]:
    json_option = "" if "old" in mode else " [-J,--output_file <file>]"
    print("USAGE: alltoall_perf [-t,--nthreads <num threads>]" + json_option)
    sys.exit(0)
options = dict(zip(args[::2], args[1::2]))
if "old" in mode and "-J" in options:
    sys.exit("invalid option -- 'J'")
if "hang-at-once" in mode:
    time.sleep(60)
if "no-gpu" in mode:
    print("Test CUDA failure common.cu:1 'no CUDA-capable device is detected'")
    sys.exit(2)
print("# Collective test starting: alltoall_perf\n# nThread 1 nGpus", options["-g"])
for rank in range(int(options["-g"])):
    print(f"#  Rank {{rank:>2}} Group  0 Pid 7 on box device {{rank:>2}} [0000:1b:00] NVIDIA H100 80GB HBM3")
print("#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong")
results, size, ranks = [], int(options["-b"]), int(options["-g"])
while size <= int(options["-e"]):
    time_us = size / 40e3
    half = dict(time=time_us, alg_bw=40.0, bus_bw=40.0 * (ranks - 1) / ranks, nwrong=0)
    rates = f"{{time_us:.2f}} 40.00 {{half['bus_bw']:.2f}}"
    print(size, size // 4 // ranks, "float none -1", rates, 0, rates, "N/A", flush=True)
    row = dict(size=size, count=size // 4 // ranks, type="float", redop="none", root="-1")
    results.append(dict(row, out_of_place=half, in_place=dict(half, nwrong=None)))
    size *= int(options["-f"])
    if "hang-later" in mode and len(results) == 3:
        time.sleep(60)
print("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 30.0")
if "-J" in options and "no-file" not in mode:
    device = dict(rank=0, group=0, pid=7, hostname="box", device=0, device_info="NVIDIA H100 80GB HBM3")
    config = dict(nthreads=1, ngpus=ranks, devices=[device])
    data = dict(version=3, start_time="2026-01-15 10:00:00", args=sys.argv, env=["TOKEN=hunter2"])
    data |= dict(nccl_version=23007, config=config, results=results)
    data |= dict(average_bus_bandwidth=dict(bandwidth=30.0), end_time="2026-01-15 10:01:00")
    with open(options["-J"], "w") as file:
        json.dump(data, file)
sys.exit(3 if "fail-late" in mode else 0)
"""


@pytest.fixture
def nccl_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as nccl-tests builds it. Nothing may be left in the folder for temporary files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    program = tmp_path / "nccl-tests" / "build" / "alltoall_perf"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    yield tmp_path / "nccl-tests"
    assert list(temporary.iterdir()) == []


def with_fake(folder: Path, timeout_seconds: float = 30.0) -> MeasureFacts:
    rank, facts = collective.measure(SWEEP, ranks=4, nccl_tests=folder, timeout_seconds=timeout_seconds)
    assert rank == 0
    (one,) = facts
    return one


@pytest.mark.parametrize(("mode", "date"), [("", "2026-01-15"), ("old", None), ("no-file", None)])
def test_nccl_tests_is_used_where_it_is(
    mode: str, date: str | None, nccl_tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With -J and its JSON, without -J where the version has none, and by its text where the file does not
    come.
    """
    monkeypatch.setenv("FAKE", mode)
    facts = with_fake(nccl_tests)
    assert (facts.kind, facts.collective, facts.ranks, facts.hosts) == (
        "nccl-tests",
        "alltoall",
        4,
        ("box",) * 4,
    )
    assert [sample.size_bytes for sample in facts.samples if not sample.in_place] == SWEEP.sizes
    assert fit_facts(facts, 3 / 4).bytes_per_s == pytest.approx(30e9, rel=1e-3)
    assert facts.source == "alltoall_perf -b 8388608 -e 67108864 -f 2 -g 4"
    assert facts.warnings == ()
    assert facts.date == date if date else facts.date is not None
    assert "hunter2" not in repr(facts)


@pytest.mark.parametrize(
    ("mode", "rows", "says"),
    [
        ("fail-late", 4, "ended with exit code 3; the rows before that are used"),
        ("hang-later", 3, "did not end within 2 s and was killed; the rows before"),
    ],
)
def test_rows_before_a_fault_are_kept_and_the_fault_is_told(
    mode: str, rows: int, says: str, nccl_tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3 after good output; a hang after three sizes."""
    monkeypatch.setenv("FAKE", mode)
    start = time.monotonic()
    facts = with_fake(nccl_tests, timeout_seconds=2 if "hang" in mode else 30)
    assert time.monotonic() - start < 15
    assert len([sample for sample in facts.samples if not sample.in_place]) == rows
    assert any(says in warning for warning in facts.warnings)


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("hang-at-once", "did not end within 2 s and was killed"),
        ("no-gpu", "exit code 2.*no CUDA-capable device is detected"),
    ],
)
def test_without_a_row_there_is_one_line(
    mode: str, says: str, nccl_tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang before the first row, a machine without GPUs."""
    monkeypatch.setenv("FAKE", mode)
    with pytest.raises(BadInput, match=f"(?s)^alltoall_perf -b .*{says}") as caught:
        with_fake(nccl_tests, timeout_seconds=2)
    assert "\n" not in str(caught.value)


def test_a_folder_without_the_program_is_an_error(
    tmp_path: Path, nccl_tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is not replaced by another way in silence; without asking, PATH is looked at."""
    with pytest.raises(
        BadInput,
        match="has no program alltoall_perf, nor has its 'build'; give the folder where nccl-tests was built",
    ):
        collective.measure(SWEEP, nccl_tests=tmp_path)
    assert find_alltoall_perf(nccl_tests / "build") == nccl_tests / "build" / "alltoall_perf"
    monkeypatch.setenv("PATH", str(nccl_tests / "build"))
    assert find_alltoall_perf(None) == nccl_tests / "build" / "alltoall_perf"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_alltoall_perf(None) is None
    with pytest.raises(
        BadInput, match="alltoall_perf is not run here, since the CPU was asked for; start it under mpirun"
    ):
        collective.measure(SWEEP, nccl_tests=nccl_tests, device="cpu")


class TestJob:
    """What is measured, and how ranks' times become facts."""

    def test_sizes_are_those_of_nccl_tests(self) -> None:
        """-b 8M -e 256M -f 2 by default; the last is not passed."""
        assert Sweep().sizes == [(8 << 20) << step for step in range(6)]
        assert Sweep(3, 100, 3).sizes == [3, 9, 27, 81]
        assert Sweep(5, 5).sizes == [5]

    @pytest.mark.parametrize(
        "sweep", [(0, 5, 2, 1), (5, 4, 2, 1), (5, 6, 1, 1), (5, 6, 2, 0), (1, 1 << 70, 2, 1)]
    )
    def test_no_sweep_is_made_of_nonsense(self, sweep: tuple[int, int, int, int]) -> None:
        """Sizes that do not go up, or are too many; no repeat."""
        with pytest.raises(BadInput, match=r"cannot measure|more than the 64"):
            Sweep(*sweep)

    @pytest.mark.parametrize(
        ("job", "says"),
        [
            ((1, SWEEP, "cpu", 5.0), "1 rank sends nothing"),
            ((2, SWEEP, "cpu", 0.0), "the timeout is 0.0 s"),
            ((2, SWEEP, "cpu", 5.0, (0,)), "1 domains are named for 2 ranks"),
        ],
    )
    def test_no_job_is_made_of_nonsense(
        self, job: tuple[int, Sweep, str, float, tuple[int, ...] | None], says: str
    ) -> None:
        """One rank, no time, domains of others."""
        with pytest.raises(BadInput, match=says):
            MeasureJob(*job)

    def test_a_job_comes_back_from_its_file(self, tmp_path: Path) -> None:
        """With domains and without."""
        for job in (MeasureJob(2, SWEEP, "cpu", 5.0), MeasureJob(2, SWEEP, "cuda", 5.0, (0, 0))):
            save(job, tmp_path / "job.json")
            assert load(tmp_path / "job.json") == job

    def test_scopes_follow_hosts(self) -> None:
        """Two hosts of two: domains, rails, all.

        A scope that repeats another, or of unlike groups, is not measured.
        """
        assert scopes(["a", "a", "b", "b"], None) == {
            "domain": [[0, 1], [2, 3]],
            "rail": [[0, 2], [1, 3]],
            "all": [[0, 1, 2, 3]],
        }
        assert scopes(["a", "a"], None) == {"all": [[0, 1]]}
        assert scopes(["a", "b"], None) == {"all": [[0, 1]]}
        assert scopes(["a", "a", "b"], None) == {"all": [[0, 1, 2]]}
        assert scopes(["a"] * 4, (0, 0, 1, 1)) == {"domain": [[0, 1], [2, 3]], "all": [[0, 1, 2, 3]]}

    def test_a_size_takes_as_long_as_its_slowest_rank(self) -> None:
        """In the median over repeats: 2 s of (1, 2), (2, 1), (9, 9)."""
        job = MeasureJob(2, Sweep(100, 100), "cpu", 5.0)
        found = [
            {"host": "a", "gpu": None, "rows": {"all": [{"size": 100, "seconds": seconds}]}}
            for seconds in ([1, 2, 9], [2, 1, 9])
        ]
        (facts,) = measured(job, found, "x", "2026-01-15")
        assert facts.samples == (Sample(100, 2, 50.0, 25.0, 25.0, in_place=False),)
        assert (facts.kind, facts.hosts, facts.date) == ("torch-gloo", ("a", "a"), "2026-01-15")
        assert any("between CPU processes over gloo" in warning for warning in facts.warnings)


@needs_torch
def test_two_processes_here_measure_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started by ourselves, labelled as what it is, nothing left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rank, (facts,) = collective.measure(
        Sweep(1 << 16, 1 << 18, repeats=2), ranks=2, device="cpu", timeout_seconds=60
    )
    assert (rank, facts.kind, facts.scope, facts.ranks, len(set(facts.hosts))) == (
        0,
        "torch-gloo",
        "all",
        2,
        1,
    )
    assert [sample.size_bytes for sample in facts.samples] == [1 << 16, 1 << 17, 1 << 18]
    assert all(sample.seconds > 0 for sample in facts.samples)
    assert facts.source == "torch.distributed all-to-all over gloo, 2 ranks"
    assert list(tmp_path.iterdir()) == []


@needs_torch
def test_gpus_that_are_not_there_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """None visible, fewer than asked for, another number of ranks started."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(
        BadInput, match="0 GPUs are visible here; measure at least 2 GPUs, or say --ranks N --device cpu"
    ):
        collective.measure_with_torch(SWEEP)
    with pytest.raises(BadInput, match="4 ranks on this machine need as many GPUs, torch sees 0"):
        collective.measure_with_torch(SWEEP, ranks=4, device="cuda")
    with pytest.raises(BadInput, match="device 'tpu' is none of"):
        collective.measure_with_torch(SWEEP, ranks=4, device="tpu")
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match="4 ranks were asked for and 2 were started"):
        collective.measure_with_torch(SWEEP, ranks=4)


MEASURE = """
import json, os, signal, sys, time
from dataclasses import asdict
if os.environ.get("FAULT") == os.environ["RANK"]:
    sys.exit(7)
if os.environ.get("FAULT"):
    from probes.ranks import launched as rank_launched
    rank_launched.ROLL_CALL_SECONDS = 1.0
from planner.base import BadInput
from probes.collective.run import measure
from probes.collective.job import Sweep
try:
    sweep = Sweep(int(sys.argv[1]), int(sys.argv[2]), 2, 5)
    rank, facts = measure(sweep, device="cpu", timeout_seconds=float(sys.argv[3]))
except BadInput as error:
    print("line:", error)
    sys.exit(2)
if rank == 0:
    print(json.dumps([asdict(one) for one in facts]))
"""
INSIDE, BETWEEN = 40e6, 10e6
# four ranks at 40 MB/s each way keep two cores busy: on a machine that does other work too, they get less
CPU_BOUND = 0.3


def run_emulated(smallest: int, largest: int, timeout_seconds: float, fault: str = "") -> tuple[Ended, ...]:
    with emulated(flat_cluster(2, 2, INSIDE, BETWEEN)) as cluster:
        argv = [sys.executable, "-c", MEASURE, str(smallest), str(largest), str(timeout_seconds)]
        return cluster.run(argv, timeout_seconds + 40, {"PYTHONPATH": str(ROOT), "FAULT": fault})


def facts_from(text: str) -> dict[str, MeasureFacts]:
    found = {}
    for entry in json.loads(text):
        entry["samples"] = [Sample(**sample) for sample in entry["samples"]]
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        found[entry["scope"]] = MeasureFacts(**values)
    return found


def as_topology() -> Topology:
    """The emulated cluster as it was asked for, with twice its rates as line rates, so that only a
    measurement can give the right ones.
    """
    line = Evidence("assumed", "twice what the links are shaped to")
    node = Node(
        (GpuModel("rank", 1e9, 1e9, {"bf16": 1e9}, line),) * 2,
        NvLink("switch", (Island((0, 1), (Rate(2 * INSIDE, line),) * 2),)),
        nics=tuple(Nic(Rate(2 * BETWEEN, line), (gpu,), gpu) for gpu in (0, 1)),
    )
    return Topology(
        "emulated",
        (replace(node, name="host0"), replace(node, name="host1")),
        Fabric("none", line),
        "made up for tests",
    )


@needs_torch
@needs_namespaces
@pytest.mark.alone
def test_an_emulated_cluster_is_measured_to_its_shaped_rates() -> None:
    """Two hosts of two ranks over real sockets: 10 MB/s between hosts come out within 10 %, 40 inside
    nearly, and go into the topology of that cluster.
    """
    ended = run_emulated(2 << 20, 8 << 20, 60)
    assert [one.exit_code for one in ended] == [0, 0, 0, 0], [one.stderr[-500:] + one.stdout for one in ended]
    assert [one.stdout for one in ended[1:]] == ["", "", ""]
    found = facts_from(ended[0].stdout)
    assert {scope: (one.groups, one.hosts) for scope, one in found.items()} == {
        scope: (groups, ("host0", "host0", "host1", "host1"))
        for scope, groups in (("domain", 2), ("rail", 2), ("all", 1))
    }
    for scope, shaped, tolerance in (
        ("domain", INSIDE, CPU_BOUND),
        ("rail", BETWEEN, 0.1),
        ("all", BETWEEN, 0.1),
    ):
        shares = host_shares(found[scope])
        assert shares is not None
        assert fit_facts(found[scope], shares.between or shares.inside).bytes_per_s == pytest.approx(
            shaped, rel=tolerance
        ), scope
    assert bisection_bytes_per_s(found["all"]) == pytest.approx(2 * BETWEEN, rel=0.1)
    topology = apply_measurement(apply_measurement(as_topology(), found["domain"]), found["all"])
    for node in topology.nodes:
        rates = {"inside": node.nvlink.islands[0].rates, "between": tuple(nic.rate for nic in node.nics)}
        assert [rate.evidence.kind for each in rates.values() for rate in each] == ["measured"] * 4
        assert [rate.bytes_per_s for rate in rates["inside"]] == pytest.approx([INSIDE] * 2, rel=CPU_BOUND)
        assert [rate.bytes_per_s for rate in rates["between"]] == pytest.approx([BETWEEN] * 2, rel=0.1)
        assert (
            "torch-gloo alltoall, 4 ranks on 2 hosts: torch.distributed all-to-all over gloo, 4 ranks, 20"
            in rates["between"][0].evidence.source
        )


@needs_torch
@needs_namespaces
def test_a_rank_that_is_missing_on_a_cluster_is_named() -> None:
    """Rank 3 ended before it joined: the others say so within the time limit, one line each, and are gone."""
    start = time.monotonic()
    ended = run_emulated(1 << 20, 2 << 20, 5, fault="3")
    assert time.monotonic() - start < 40
    assert [one.exit_code for one in ended] == [2, 2, 2, 7]
    assert "rank 3 in 'start'" in ended[0].stdout
    assert all(len(one.stdout.splitlines()) == 1 for one in ended[:3])
