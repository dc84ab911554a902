"""The batch file as text; tests/launchers/test_slurm.py starts it under Slurm itself."""

import subprocess

import pytest

from planner.launch import slurm
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job, nameless


def test_hosts_are_asked_for_and_pinned_in_the_plans_order() -> None:
    """Slurm sorts --nodelist, so that the host file is what fixes the order."""
    text = slurm.batch_text(job(hosts=["node66", "node7"]))
    assert "#SBATCH --nodelist=node66,node7\n#SBATCH --gpus-per-node=4\n" in text
    assert "HOSTS=(node66 node7)" in text
    assert text.count("--distribution=arbitrary") == 2


def test_without_hosts_slurm_chooses_and_it_is_said() -> None:
    """A preset's plan fits any equal nodes; a wrong number of them stops the job."""
    written = slurm.write(job(topology=nameless(machine(4, 4))))
    text = written.files["job.sbatch"]
    assert "--nodelist" not in text
    assert '[ "${#HOSTS[@]}" -eq 2 ]' in text
    assert any("Slurm chooses them" in note for note in written.notes)


def test_mpi_gets_a_task_for_each_gpu() -> None:
    """TensorRT-LLM's ranks are MPI's; node by node, as many as each holds."""
    text = slurm.batch_text(job("trtllm"))
    assert "srun --mpi=pmix --nodes=2 --ntasks=8 --distribution=arbitrary" in text
    assert 'export SLURM_HOSTFILE="$FOLDER/ranks"' in text


def test_nodes_of_different_size_get_whole_nodes() -> None:
    """One number of GPUs a node cannot say 8, 4, 4; --exclusive takes whatever each has."""
    text = slurm.batch_text(job("vllm", machine(8, 4, 4)))
    assert "--gpus-per-node" not in text
    assert "GPUS=(8 4 4)" in text


@pytest.mark.parametrize("engine", ["sglang", "trtllm", "vllm"])
def test_bash_can_read_it(engine: str) -> None:
    """Syntax, for every engine."""
    subprocess.run(["bash", "-n"], input=slurm.batch_text(job(engine)), text=True, check=True, timeout=10)
