"""GPUs that a plan leaves out: the numbers of the others on their hosts, from the machine to the launch."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.engines import engine_names, find_engine, judge_launch
from planner.engines.common.script import VISIBLE
from planner.launch import launched
from planner.topology import Topology, topology_from_dict
from tests.planner.engines.examples import TINY, machine, question
from tests.planner.launch.jobs import emitted


def damaged() -> Topology:
    """Two nodes of four GPUs, the second lost on one, the third on the other."""
    return machine(4, 4).without((1, 6))


def test_the_numbers_that_the_host_has() -> None:
    """Kept through files and a second loss; a whole node has none, nor has one that is cut from the end."""
    topology = damaged()
    assert [node.devices for node in topology.nodes] == [(0, 2, 3), (0, 1, 3)]
    assert topology_from_dict(topology.to_dict()) == topology
    assert [node.devices for node in topology.without((4,)).nodes] == [(0, 2, 3), (0, 3)]
    assert [node.devices for node in topology.without((0, 1, 2)).nodes] == [(0, 1, 3)]
    assert [node.devices for node in machine(4, 4).select(2, 3).nodes] == [(), ()]
    assert [node.devices for node in machine(4, 4).without((3,)).nodes] == [(0, 1, 2), ()]


@pytest.mark.parametrize("devices", [(0, 1), (0, 1, 1, 2), (3, 2, 1, 0), (-1, 0, 1, 2)])
def test_numbers_that_cannot_be(devices: tuple[int, ...]) -> None:
    """One line."""
    with pytest.raises(BadInput, match="give a rising number from 0 on for each GPU"):
        replace(machine(4).nodes[0], devices=devices)


def test_numbers_in_a_file_are_whole() -> None:
    """One line that names the place."""
    value = machine(4).to_dict()
    value["nodes"][0]["devices"] = [0, 1, 2, "3"]
    with pytest.raises(BadInput, match=r"nodes\[0\]: devices\[3\]: '3'; expected a whole number"):
        topology_from_dict(value)


def served_by(topology: Topology) -> list[str]:
    redundant = -TINY.experts % topology.gpu_count or topology.gpu_count
    engines = [name for name in engine_names() if find_engine(name).ACCELERATOR == "nvidia"]
    return [name for name in engines if not judge_launch(name, question(TINY, topology, redundant)).refused]


@pytest.mark.parametrize("engine", sorted({*served_by(damaged()), "sglang", "vllm"}))
def test_each_node_names_its_gpus(engine: str) -> None:
    """In the script and in the command that other launchers take."""
    emission, _ = emitted(engine, damaged())
    for command, devices in zip(emission.commands, ("0,2,3", "0,1,3"), strict=True):
        assert dict(command.environment)[VISIBLE["nvidia"]] == devices
        assert f"{VISIBLE['nvidia']}={devices}" in emission.launch


def test_whole_nodes_name_none() -> None:
    """As before."""
    assert VISIBLE["nvidia"] not in emitted("sglang")[0].launch


def test_tensorrt_llm_takes_a_host_s_first_gpus() -> None:
    """Refused on several hosts."""
    redundant = -TINY.experts % 6 or 6
    refused = judge_launch("trtllm", question(TINY, damaged(), redundant)).refused
    assert "devices" in [finding.rule for finding in refused]


@pytest.mark.parametrize("launcher", ["kubernetes", "llm_d", "dynamo"])
def test_pods_cannot_choose(launcher: str) -> None:
    """They ask for a number of GPUs."""
    emission, job = emitted("sglang", damaged(), image="engine:1", version="0.5.21")
    with pytest.raises(BadInput, match="pods ask for a number of GPUs and cannot leave one of a host out"):
        launched(emission, job, launcher.replace("_", "-"))


def test_slurm_is_asked_for_all_of_them() -> None:
    """Not for as many as serve: it would choose them, and number them anew."""
    emission, job = emitted("sglang", damaged())
    written = launched(emission, job, "slurm")
    assert "gpus-per-node" not in written.files["job.sbatch"]
    assert any("ask for all GPUs of these nodes" in note for note in written.notes)
    whole = launched(*emitted("sglang"), "slurm")
    assert "#SBATCH --gpus-per-node=4" in whole.files["job.sbatch"]
