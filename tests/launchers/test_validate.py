"""validate.sh as two nodes start it, by torchrun itself: on the plan's hosts, and on swapped ones.

Both nodes are this machine, on the CPU; Slurm's name of a host tells them apart.
"""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.cli import main
from tests.places import ROOT

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

HOSTS = ("node66", "node7")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for two nodes of one GPU each, emitted; and the programs that the nodes have."""
    found = tmp_path_factory.mktemp("validate")
    plan, shape = (
        found / "plan.json",
        ["--topology", "hgx-h100:2x1", "--redundant", "0", "--method", "linear"],
    )
    commands = [
        ["solve", "--model", "deepseek-v2-lite", *shape, "--engine", "vllm", "-o", plan],
        ["emit", plan, "--engine", "vllm", "--flags-only", "--hosts", ",".join(HOSTS), "-o", found / "out"],
    ]
    for words in commands:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == 0, done.output
    (found / "bin").mkdir()
    programs = {"moeplan": "planner", "torchrun": "torch.distributed.run"}
    for name, module in programs.items():
        (found / "bin" / name).write_text(f'#!/bin/bash\nexec {sys.executable} -m {module} "$@"\n')
        (found / "bin" / name).chmod(0o755)
    return found


def start(folder: Path, hosts: tuple[str, str]) -> list["subprocess.CompletedProcess[str]"]:
    """validate.sh on both nodes at once, whose hosts have these names."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    places = {"PATH": f"{folder / 'bin'}:{clean['PATH']}", "PYTHONPATH": str(ROOT)}
    told = {"HEAD_ADDRESS": "127.0.0.1", "VALIDATE_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    words = [shutil.which("bash") or "bash", str(folder / "out" / "validate.sh")]
    small = ["--device", "cpu", "--layers", "1", "--repeats", "1", "--tokens", "8", "--timeout", "100"]
    started = [
        subprocess.Popen(
            [*words, *small],
            env={**clean, **places, **told, "NODE_RANK": str(node), "SLURMD_NODENAME": host},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node, host in enumerate(hosts)
    ]
    outputs = [process.communicate(timeout=150) for process in started]
    return [
        subprocess.CompletedProcess(words, process.returncode, *output)
        for process, output in zip(started, outputs, strict=True)
    ]


def test_on_the_plans_hosts_every_check_holds(folder: Path) -> None:
    """Rank 0 alone speaks."""
    first, second = start(folder, HOSTS)
    assert (first.returncode, second.returncode, second.stdout) == (0, 0, ""), first.stderr
    assert "ok     sums: every token came back" in first.stdout


def test_on_swapped_hosts_nothing_is_timed(folder: Path) -> None:
    """The line names the first rank and both hosts."""
    for done in start(folder, ("node7", "node66")):
        assert (done.returncode, done.stdout) == (1, "")
        assert (
            "wrong rank order, nothing was timed: rank 0 runs on host node7, the plan has it on node66"
            in (" ".join(done.stderr.split()))
        )
