"""The shell script: the engine's own, with the network environment set before its command."""

import subprocess
from pathlib import Path

import pytest

from planner.engines.common.command import Requirement
from planner.launch import shell
from planner.launch.job import Job
from planner.topology import Topology
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job, requiring, with_cards

CARDS = ["mlx5_0", "mlx5_1", "mlx5_4", "mlx5_10"]


def environment(started: Job, folder: Path, node: int, **own: str) -> dict[str, str]:
    """The network environment that the script really gives the engine on one node."""
    stand_in = folder / "python3"
    stand_in.write_text("#!/bin/bash\nenv\n")
    stand_in.chmod(0o755)
    (folder / "launch.sh").write_text(shell.write(started).files["launch.sh"])
    places = {"PATH": f"{folder}:/usr/bin:/bin", "NODE_RANK": str(node), "HEAD_ADDRESS": "head"}
    done = subprocess.run(
        ["bash", str(folder / "launch.sh")],
        env={**places, **own},
        check=True,
        timeout=20,
        capture_output=True,
        text=True,
    )
    pairs = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return {name: value for name, value in pairs.items() if name.startswith(("NCCL", "NVSHMEM"))}


def test_decode_across_nodes_sets_transport_and_cards(tmp_path: Path) -> None:
    """DeepEP's low-latency kernels send through NVSHMEM's GPU-initiated transport; the cards are those of the
    topology, by exact name.
    """
    assert environment(job(topology=with_cards(machine(4, 4), CARDS, CARDS)), tmp_path, 1) == {
        "NVSHMEM_REMOTE_TRANSPORT": "ibgda",
        "NVSHMEM_IB_ENABLE_IBGDA": "true",
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1,mlx5_4,mlx5_10",
        "NVSHMEM_HCA_LIST": "mlx5_0:1,mlx5_1:1,mlx5_4:1,mlx5_10:1",
    }


def test_nodes_with_other_cards_get_their_own(tmp_path: Path) -> None:
    """The second node's cards have other names."""
    started = job(topology=with_cards(machine(4, 4), CARDS, ["ibp1", "ibp2", "ibp3", "ibp4"]))
    assert environment(started, tmp_path, 0)["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1,mlx5_4,mlx5_10"
    assert environment(started, tmp_path, 1)["NCCL_IB_HCA"] == "=ibp1,ibp2,ibp3,ibp4"


def test_a_value_that_is_set_already_is_kept(tmp_path: Path) -> None:
    """A person knows their cards better."""
    found = environment(
        job(topology=with_cards(machine(4, 4), CARDS, CARDS)), tmp_path, 0, NCCL_IB_HCA="mlx5_7"
    )
    assert found["NCCL_IB_HCA"] == "mlx5_7"


@pytest.mark.parametrize("cards", [("",) * 4, ("eth0",) * 4, ("mlx5_0", "$(x)", "mlx5_1", "mlx5_2")])
def test_names_that_are_no_rdma_devices_are_left_out_and_it_is_said(
    cards: tuple[str, ...], tmp_path: Path
) -> None:
    """A preset's NICs have no names; a guess would keep NCCL off its cards."""
    started = job(topology=with_cards(machine(4, 4), cards, cards))
    assert "NCCL_IB_HCA" not in environment(started, tmp_path, 0)
    assert any("names no RDMA device" in note for note in shell.write(started).notes)


def test_one_node_needs_no_network(tmp_path: Path) -> None:
    """The script of one node is the engine's own."""
    started = job(topology=machine(8))
    assert shell.write(started).files["launch.sh"] == started.files["launch.sh"]


def test_prefill_does_not_ask_for_ibgda(tmp_path: Path) -> None:
    """Normal mode across small nodes sends per node, not per slot."""
    assert "NVSHMEM_REMOTE_TRANSPORT" not in environment(job(phase="prefill"), tmp_path, 0)


def test_the_note_says_which_host_is_which_node() -> None:
    """C22: hosts that a launcher sorts by name would rank as node66, node7, node70, node8."""
    hosts = ["node7", "node66", "node8", "node70"]
    notes = shell.write(job(topology=machine(2, 2, 2, 2), hosts=hosts)).notes
    assert "node7 is 0, node66 is 1, node8 is 2, node70 is 3" in notes[0]


@pytest.mark.parametrize(("topology", "own"), [(machine(8), {}), (machine(4, 4), {"NODE_RANK": "1"})])
def test_without_its_plugin_nothing_is_started(
    topology: Topology, own: dict[str, str], tmp_path: Path
) -> None:
    """Exit code 2 and the line that says what to do; with it, the engine."""
    wanted = Requirement("[ -e installed ]", "it's missing: pip install ./plugin")
    started = requiring(job("vllm", topology), wanted)
    (tmp_path / "launch.sh").write_text(shell.write(started).files["launch.sh"])
    (tmp_path / "vllm").write_text("#!/bin/bash\necho started\n")
    (tmp_path / "vllm").chmod(0o755)

    def launch() -> tuple[int, str, str]:
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HEAD_ADDRESS": "head", **own}
        done = subprocess.run(
            ["bash", "launch.sh"],
            cwd=tmp_path,
            env=environment,
            check=False,
            timeout=20,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    assert launch() == (2, "", "it's missing: pip install ./plugin\n")
    (tmp_path / "installed").touch()
    assert launch() == (0, "started\n", "")
