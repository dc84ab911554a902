"""The whole chain on two hosts made of network namespaces.

Probe and measure on both, merge, solve, emit, check.
"""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.cli import main
from probes.emulation.flat import flat_cluster
from probes.emulation.namespaces import emulated, unavailable
from tests.places import ROOT
from tests.probes.fake_nvml.machines import pci, switched, text
from tests.probes.fake_sysfs import fake_host

INSIDE, BETWEEN = 50e6, 12.5e6  # bytes/s; low enough that two cores keep up
PROBE = """
import os, socket, sys
folder = sys.argv[1]
os.environ["FAKE_NVML_PROFILE"] = f"{folder}/{socket.gethostname()}.profile"
flags = ["--measure", "--smallest", "1 MB", "--largest", "4 MB", "--record", folder]
flags += ["--sysfs-root", f"{folder}/{socket.gethostname()}"]
from planner.cli import main
main(["probe", *flags])
"""


def make_host(folder: Path, number: int) -> None:
    """Two H100 behind an NVSwitch, a 400G adapter beside each."""
    host = fake_host(folder / f"host{number}", f"host{number}", f"{number:036x}")
    for gpu in range(2):
        root = f"pci{0x10 + gpu:04x}:00/{0x10 + gpu:04x}:00:01.0"
        host.device(f"{root}/{pci(gpu)}", numa=gpu)
        host.adapter(
            f"mlx5_{gpu}",
            f"{root}/0000:{0x1C + 0x10 * gpu:02x}:00.0",
            numa=gpu,
            guid=f"0c42:a1{number:02x}:0012:34{gpu:02x}",
        )
    (folder / f"host{number}.profile").write_text(text(switched("NVIDIA H100 80GB HBM3", 18, 2, host=number)))


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.skipif(unavailable() is not None, reason=f"no emulated cluster here: {unavailable()}")
@pytest.mark.alone
def test_probe_measure_merge_solve_emit(nvml_libraries: Path, tmp_path: Path) -> None:
    """Four ranks on two hosts: the merged machine is right, the rate between hosts is the shaped one, and a
    plan for it can be loaded.
    """
    pytest.importorskip("torch", reason="measuring between hosts needs torch")
    for number in range(2):
        make_host(tmp_path, number)
    with emulated(flat_cluster(2, 2, INSIDE, BETWEEN)) as cluster:
        environment = {"PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": str(nvml_libraries / "new")}
        ended = cluster.run([sys.executable, "-c", PROBE, str(tmp_path)], 120, environment)
    assert [one.exit_code for one in ended] == [0, 0, 0, 0], [one.stderr[-800:] for one in ended]
    files = sorted(tmp_path.glob("moeplan-*.json"))
    assert [path.name.split("-")[1] for path in files] == ["measure", "probe", "probe"]

    machine = tmp_path / "cluster.json"
    found = json.loads(run("probe", "--merge", *files, "--cpu-rates", "-o", machine, "--json"))
    assert (found["gpus"], found["nvlink_domains"], found["nics"]) == (4, [[0, 1], [2, 3]], 4)
    assert found["affinity"] == {"0": ["mlx5_0"], "1": ["mlx5_1"], "2": ["mlx5_0"], "3": ["mlx5_1"]}
    nics = json.loads(machine.read_text())["nodes"][0]["nics"][0]["rate"]
    assert nics["evidence"] == "measured"
    assert rate(nics["value"]) == pytest.approx(BETWEEN, rel=0.1)

    assert "--cpu-rates" in " ".join(
        json.loads(run("probe", "--merge", *files, "--json"))["warnings"]
    )  # GPUs do not go through gloo: only when asked

    run(
        "solve",
        "--model",
        "mixtral",
        "--topology",
        machine,
        "--redundant",
        "4",
        "--method",
        "refine",
        "-o",
        tmp_path / "plan.json",
    )
    run("emit", tmp_path / "plan.json", "--engine", "trtllm", "-o", tmp_path / "out")
    run("check", tmp_path / "out" / "moe_load_balancer.yaml")
    assert "measured" in run("topology", "show", machine)


def rate(human: str) -> float:
    from planner.base import parse_bandwidth

    return parse_bandwidth(human)
