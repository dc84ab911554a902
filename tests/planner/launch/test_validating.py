"""`moeplan validate` as each launcher starts it: on the engine's hosts, in the plan's order."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.launch import kubernetes, launched, shell, slurm
from planner.launch.job import Job
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import emitted, job, nameless
from tests.planner.launch.pods import Shell

FILES = {
    "shell": {"validate.sh"},
    "slurm": {"validate.sh", "validate.sbatch"},
    "kubernetes": {"validate.sh", "validate.yaml"},
    "llm-d": set(),
}


def started(
    folder: Path, script: str, *more: str, programs: tuple[str, ...] = ("moeplan", "torchrun"), **own: str
) -> "subprocess.CompletedProcess[str]":
    """What the script starts, a word a line: programs that write down their words stand in."""
    (folder / "bin").mkdir(parents=True)
    for name in programs:
        (folder / "bin" / name).write_text(
            f'#!/bin/bash\nprintf "%s\\n" {name} "$CUDA_VISIBLE_DEVICES" "$@"\n'
        )
        (folder / "bin" / name).chmod(0o755)
    (folder / "validate.sh").write_text(script)
    places = {"PATH": f"{folder}/bin:/usr/bin:/bin"}
    return subprocess.run(
        ["bash", folder / "validate.sh", *more],
        env={**places, **own},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def script_of(started_job: Job) -> str:
    return shell.validate(started_job)["validate.sh"]


@pytest.mark.parametrize("launcher", FILES)
def test_it_is_written_beside_the_engines_launch(launcher: str) -> None:
    emission, found = emitted(image="example/engine:1")
    files = set(launched(emission, found, launcher).files)
    assert {name for name in files if name.startswith("validate")} == FILES[launcher]


def test_no_file_for_accelerators_that_validate_cannot_use() -> None:
    emission, found = emitted("vllm_ascend")
    assert not [name for name in launched(emission, found, "shell").files if name.startswith("validate")]


def test_a_node_starts_its_ranks_under_its_number_in_the_plan(tmp_path: Path) -> None:
    """And what is given to the script goes to `moeplan validate`."""
    script = script_of(job("vllm", machine(4, 4)))
    done = started(tmp_path, script, "--layers", "2", NODE_RANK="1", HEAD_ADDRESS="node66")
    assert done.stdout.splitlines() == [
        "torchrun", "", "--nnodes=2", "--nproc-per-node=4", "--node-rank=1", "--master-addr=node66",
        "--master-port=29500", "--max-restarts=0", "--no-python", "moeplan", "validate",
        f"{tmp_path}/plan.json", "--device", "cuda", "--hosts", "host0,host1", "--layers", "2",
    ]  # fmt: skip


def test_it_refuses_to_guess_which_node_this_is(tmp_path: Path) -> None:
    done = started(tmp_path, script_of(job()), HEAD_ADDRESS="node66")
    assert (done.returncode, done.stdout) == (1, "")
    assert "NODE_RANK: set it to the number of this node in the plan, 0 to 1" in done.stderr


def test_one_node_needs_no_torchrun(tmp_path: Path) -> None:
    """`moeplan validate` starts the ranks itself."""
    done = started(tmp_path, script_of(job(topology=machine(8))))
    assert done.stdout.split() == ["moeplan", "validate", f"{tmp_path}/plan.json", "--device", "cuda"]


def test_gpus_that_are_left_out_are_not_seen(tmp_path: Path) -> None:
    script = script_of(job("vllm", machine(4, 4).without((1, 6))))
    done = started(tmp_path, script, NODE_RANK="1", HEAD_ADDRESS="node66")
    assert done.stdout.splitlines()[:4] == ["torchrun", "0,1,3", "--nnodes=2", "--nproc-per-node=3"]


def test_a_host_without_moeplan_is_told_what_to_install(tmp_path: Path) -> None:
    done = started(tmp_path, script_of(job()), programs=("torchrun",))
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "moeplan is not on this host: install moeplan with its extra 'hardware' on every node\n"
    )


def test_slurm_starts_it_in_the_order_of_the_host_file() -> None:
    """Also where the engine's ranks are MPI's: validate's are torchrun's, a task a node."""
    text = slurm.validate(job("trtllm", hosts=("node66", "node7")))["validate.sbatch"]
    assert "HOSTS=(node66 node7)" in text
    assert 'export SLURM_HOSTFILE="$FOLDER/nodes"\nsrun --nodes=2 --ntasks=2 --distribution=arbitrary' in text
    assert 'exec bash "$PLAN_DIR/validate.sh"' in text
    assert "launch.sh" not in text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=20)


@pytest.mark.parametrize("hosts", [(), ("node66", "node7")])
def test_kubernetes_takes_the_manifest(hosts: tuple[str, ...]) -> None:
    """By its own schemas: a Job whose pods are the nodes, run once, and the Service that names them."""
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    manifest = kubernetes.validate(job(topology=nameless(machine(4, 4)), hosts=hosts, image="i"))[
        "validate.yaml"
    ]
    found = list(yaml.safe_load_all(manifest))
    assert [value["kind"] for value in found] == ["Job", "Service"]
    for value in found:
        kubernetes_validate.validate(value, kubernetes_validate.latest_version(), strict=True)
    assert (found[0]["spec"]["completions"], found[0]["spec"]["backoffLimit"]) == (2, 0)


def pod_says(folder: Path, hosts: tuple[str, ...], **environment: str) -> str:
    """What a pod's command hands to validate.sh, or why it starts nothing."""
    found = job(topology=nameless(machine(4, 4)), hosts=hosts, image="i")
    pods: dict[str, Any] = next(yaml.safe_load_all(kubernetes.validate(found)["validate.yaml"]))
    playing = Shell(folder, {"validate.sh": 'echo "$NODE_RANK $HEAD_ADDRESS" >&2\n'})
    return playing.run(pods["spec"]["template"], **environment)[1]


def test_a_pod_takes_its_number_from_its_host_or_its_index(tmp_path: Path) -> None:
    """Node 0 is found by its host's name, or by that of the first pod."""
    hosts = ("node66", "node7")
    assert pod_says(tmp_path / "a", hosts, NODE_NAME="node7", JOB_COMPLETION_INDEX="0") == "1 node66"
    index = pod_says(tmp_path / "b", (), NODE_NAME="any", JOB_COMPLETION_INDEX="1")
    assert index == "1 moeplan-sglang-validate-0.moeplan-sglang-validate"
    foreign = pod_says(tmp_path / "c", hosts, NODE_NAME="node8", JOB_COMPLETION_INDEX="0")
    assert foreign == "node8 is not a host of this plan"
