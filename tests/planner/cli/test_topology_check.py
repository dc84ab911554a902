"""`moeplan topology check` and `import` as a person meets them: the answer is in the first lines."""

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from planner.cli import main
from planner.model import find_model
from planner.planning import diagnose, find_topology
from planner.problem import Workload
from planner.report.fabric import check_report
from planner.topology import read_topology, with_share
from tests.places import SHARED
from tests.probes.machine.logs import alltoall_log

FOLDER = SHARED / "data/topology"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


def first_lines(*words: str | Path) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return "\n".join(result.stdout.splitlines()[:5])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "alltoall.log"
    path.write_text(alltoall_log(hosts=("hostA", "hostB"), nic_bytes_per_s=3e9))
    return path


def test_a_preset_and_a_log_are_one_command(log: Path) -> None:
    """Verdict, cause, test and remedy within five lines, and the numbers in JSON."""
    said = first_lines("topology", "check", "hgx-h100:2", log, "--model", "deepseek-v3")
    assert said.startswith("The fabric costs ")
    assert "3 of the stated 50 GB/s a NIC (6 %): GPUDirect or RDMA off?" in said
    assert "NET/Socket" in said
    assert "To do: " in said
    found = json.loads(run("topology", "check", "hgx-h100:2", log, "--model", "deepseek-v3", "--json").stdout)
    verdict = found["verdict"]
    (reading,) = verdict["readings"]
    assert reading["stated_bytes_per_s"] == 50e9
    assert reading["measured_bytes_per_s"] == pytest.approx(3e9, rel=0.02)
    assert reading["share"] == pytest.approx(0.06, rel=0.02)
    assert reading["cause"] == "GPUDirect or RDMA off?"
    assert reading["cost_seconds"] == pytest.approx(verdict["cost_seconds"])
    assert verdict["good_enough"] is False
    assert {"rule", "where", "what", "cost", "cost_seconds", "remedy"} == set(found["findings"][0])
    assert reading["at_step"]["bytes_per_s"] < 3e9


def test_an_import_says_what_its_log_contradicts(log: Path, tmp_path: Path) -> None:
    """One host's paste, a log of two: two nodes, the contradiction in the second line, and both figures in
    the file, which `show` and `check` repeat.
    """
    paste = tmp_path / "topo.txt"
    gpus = [f"GPU{gpu}" for gpu in range(8)]
    rows = [
        f"GPU{gpu}\t" + "\t".join("X" if gpu == other else "NV18" for other in range(8)) + "\tPIX\t0-63\t0"
        for gpu in range(8)
    ]
    paste.write_text("\t".join(["", *gpus, "NIC0", "CPU Affinity", "NUMA Affinity"]) + "\n" + "\n".join(rows))
    file = tmp_path / "cluster.json"
    alone = run("import", paste, log, "--gpu", "H100").stdout.splitlines()
    assert (
        alone[1] == "Measured 3 GB/s a GPU to other hosts; nothing is stated to compare it with: give --nic"
    )
    result = run("import", paste, log, "--gpu", "H100", "--nic", "3200G", "-o", file)
    assert result.exit_code == 0, result.output
    first, second, *_ = result.stdout.splitlines()
    assert first.startswith("16 GPUs")
    assert second.startswith("Measured 24 of the stated 400 GB/s a NIC that 8 GPUs share (6 %)")
    topology = read_topology(str(file))
    assert topology.node_count == 2
    stated = topology.nodes[0].nics[0].rate.stated
    assert stated is not None
    assert stated.bytes_per_s == 400e9
    assert "Measured 24 of the stated 400 GB/s" in " ".join(run("topology", "show", file).stdout.split())
    assert "GPUDirect or RDMA off?" in first_lines("topology", "check", file)
    _, notes = find_topology(str(file))
    (note,) = notes
    assert note.startswith("planned with what was measured: 24 of the stated 400 GB/s a NIC that 8 GPUs")


def test_a_log_that_does_not_fit_is_refused(log: Path) -> None:
    """More ranks than GPUs, and no benchmark at all: one line with what to do."""
    few = run("topology", "check", "hgx-h100:1", log)
    assert (few.exit_code, "NAME:2" in few.stderr) == (2, True)
    other = log.with_name("list.txt")
    other.write_text("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-4000-8000-000000000000)\n")
    none = run("topology", "check", "hgx-h100:1", other)
    assert (none.exit_code, "is no benchmark" in none.stderr) == (2, True)
    alone = run("topology", "check", "--phase", "prefill", log)
    assert (alone.exit_code, "not a topology; moeplan import" in alone.stderr) == (2, True)


def test_a_log_of_other_gpus_is_said(log: Path) -> None:
    """An H100's log beside an A100 host."""
    told = run("topology", "check", "hgx-a100:2", log, "--json")
    assert any("is it this machine?" in note for note in json.loads(told.stdout)["notes"])


def test_everything_folds_at_80_columns() -> None:
    """No line is longer, no cell is cut."""
    machine = with_share(read_topology("hgx-h100:2"), "nic", 0.46, "alltoall.log")
    found = diagnose(machine, find_model("deepseek-v3"), Workload())
    out = io.StringIO()
    Console(file=out, width=80, highlight=False, markup=False).print(check_report(found))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in out.getvalue()
    assert lines[0].startswith("The fabric costs")


RECORDED = [
    ("gb300-nvl72:16", "nccltests_oci_gb300_16h64g_alltoall.txt", "nvlink", 0.74),
    ("gb300-nvl72:1", "nccltests_json_v3_gb300_g4.json", "nvlink", 0.70),
    ("dgx-a100:1", "nccltests_superbench_alltoall.txt", "nvlink", 0.73),
    ("hgx-h100:2", "nccltests_mi300x_2n_alltoall.txt", "nic", 0.97),
    ("hgx-h100:2", "nccltests_mpirun_tag_in_row.txt", "nic", 0.47),
]


@pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the public recordings (../shared/data/topology) are not here"
)
@pytest.mark.parametrize(("machine", "name", "tier", "share"), RECORDED)
def test_public_logs(machine: str, name: str, tier: str, share: float) -> None:
    """What their runs reached by hand: busbw x N/(N-1) x n/(n-1) over the line rate. Those that are well get
    no cause, the one at half a 400 Gb/s NIC does. (The MI300X hosts have the NICs of this preset.)
    """
    result = run("topology", "check", machine, FOLDER / name, "--model", "deepseek-v2-lite", "--json")
    (reading,) = json.loads(result.stdout)["verdict"]["readings"]
    assert reading["tier"] == tier
    assert reading["share"] == pytest.approx(share, abs=0.01)
    assert (reading["cause"] is None) == (share > 0.5)
