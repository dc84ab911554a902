"""The batch file under Slurm itself, on two nodes of this machine.

node7 comes before node66 in Slurm's order, the other way round in the plan's.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from planner.engines import find_engine
from planner.launch import job_for, launched
from planner.plan import judged, plan_to_dict
from planner.topology import Topology
from tests.places import ROOT
from tests.planner.engines.examples import TINY, machine, question

HOSTS = ("node66", "node7")
PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
MISSING = [program for program in NEEDED if shutil.which(program, path=PATHS) is None]
pytestmark = [
    pytest.mark.skipif(
        bool(MISSING),
        reason=f"Slurm is not installed: no {', '.join(MISSING[:2])} (Debian: slurm-wlm, munge)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd starts jobs only where it runs as root"),
]


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def configuration(folder: Path) -> str:
    """Two nodes of two GPUs, without cgroups; two harmless devices play the GPUs."""
    controller, first, second = free_ports(3)
    host = socket.gethostname().split(".")[0]
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 Gres=gpu:2"
        for name, port in (("node7", first), ("node66", second))
    )
    return f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
GresTypes=gpu
SlurmctldPort={controller}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which Slurm's commands reach the cluster; its daemons end with the tests."""
    folder = tmp_path_factory.mktemp("slurm")
    environment = {**os.environ, "PATH": PATHS, "SLURM_CONF": str(folder / "slurm.conf")}
    (folder / "slurm.conf").write_text(configuration(folder))
    (folder / "gres.conf").write_text(
        "".join(f"NodeName=node[7,66] Name=gpu File=/dev/{device}\n" for device in ("null", "zero"))
    )
    (folder / "state").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    munge = [
        f"--{name}={folder}/munge.{end}"
        for name, end in (("key-file", "key"), ("socket", "sock"), ("pid-file", "pid"), ("log-file", "log"))
    ]
    try:
        for command in (
            ["munged", "--force", *munge, f"--seed-file={folder}/munge.seed"],
            ["slurmctld"],
            *(["slurmd", "-N", name] for name in HOSTS),
        ):
            subprocess.run(command, env=environment, check=True, timeout=20, capture_output=True)
        wait_for_idle(environment)
        yield environment
    finally:
        for file in folder.glob("*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)


def wait_for_idle(environment: dict[str, str]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done = subprocess.run(
            ["sinfo", "-h", "-o", "%T %D"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        if done.stdout.split() == ["idle", "2"]:
            return
        time.sleep(0.2)
    pytest.fail(f"the cluster did not come up: {done.stdout} {done.stderr}")


def job_folder(folder: Path, topology: Topology) -> Path:
    """The files of a two-node job, a server that writes down what it is started with, and moeplan itself."""
    engine, problem = find_engine("sglang"), question(TINY, topology, 8)
    placement = engine.default_placement(TINY, problem.gpus, 8)
    emission = engine.emit(placement, problem, "org/m")
    emission = launched(emission, job_for(emission, problem, "sglang", HOSTS), "slurm")
    files = {**emission.files, "plan.json": json.dumps(plan_to_dict(judged(problem, placement)))}
    for name, text in files.items():
        (folder / name).write_text(text)
    programs = folder / "bin"
    programs.mkdir()
    for name, body in (
        ("python3", f'echo "$@" > {folder}/started-$SLURMD_NODENAME'),
        ("moeplan", f'exec {sys.executable} -m planner "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)
    return folder


def run(folder: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    root = str(ROOT)
    paths = {"PATH": f"{folder / 'bin'}:{environment['PATH']}", "PYTHONPATH": root}
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment, **paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_batch_file_is_accepted(cluster: dict[str, str], tmp_path: Path) -> None:
    """`sbatch --test-only` finds its nodes; one that asks for more GPUs than there are is refused, so that
    the test can fail.
    """
    folder = job_folder(tmp_path, machine(2, 2))
    done = run(folder, cluster, "sbatch", "--test-only", "job.sbatch")
    assert done.returncode == 0, done.stderr
    assert "on nodes node[7,66]" in done.stderr
    assert run(folder, cluster, "sbatch", "--test-only", "--gpus-per-node=3", "job.sbatch").returncode != 0


def test_a_job_starts_in_the_plans_order(cluster: dict[str, str], tmp_path: Path) -> None:
    """node66 is node 0 though Slurm lists node7 first; the check before it saw all four ranks where the plan
    has them.
    """
    folder = job_folder(tmp_path, machine(2, 2))
    done = run(folder, cluster, "sbatch", "--wait", "job.sbatch", "--extra", "flag")
    log = next(folder.glob("moeplan-*.log")).read_text()
    assert done.returncode == 0, log
    for rank, host in enumerate(HOSTS):
        words = (folder / f"started-{host}").read_text().split()
        assert words[words.index("--node-rank") + 1] == str(rank)
        assert words[words.index("--dist-init-addr") + 1] == "node66:20000"
        assert words[-2:] == ["--extra", "flag"]
    assert "ok: 4 ranks sit as planned" in log
    assert not list(folder.glob(".moeplan-*"))


def test_slurms_own_order_is_caught_before_serving(cluster: dict[str, str], tmp_path: Path) -> None:
    """The same step without the host file: Slurm starts rank 0 on node7, and the check names every rank that
    sits elsewhere.
    """
    folder = job_folder(tmp_path, machine(2, 2))
    step = ["srun", "--nodes=2", "--ntasks=4", "--ntasks-per-node=2", f"--nodelist={','.join(HOSTS)}"]
    check = ["moeplan", "check", "--live", "plan.json", "--hosts", ",".join(HOSTS), "--timeout", "30"]
    done = run(folder, cluster, *step, *check)
    assert done.returncode == 2
    assert "rank 0 runs on host node7, the plan has it on node66" in done.stdout
    assert "rank 3 runs on host node66, the plan has it on node7" in done.stdout


def test_a_job_whose_ranks_sit_elsewhere_is_not_served(cluster: dict[str, str], tmp_path: Path) -> None:
    """The check's exit code ends the job before any server starts."""
    folder = job_folder(tmp_path, machine(2, 2))
    (folder / "bin" / "moeplan").write_text("#!/bin/bash\nexit 2\n")
    assert run(folder, cluster, "sbatch", "--wait", "job.sbatch").returncode != 0
    assert not list(folder.glob("started-*"))
    assert not list(folder.glob(".moeplan-*"))
