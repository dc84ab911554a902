"""Who we are among the processes of a launcher."""

import pytest

from planner.base import BadInput
from probes.ranks.launch import Launch, adopt, launch_of

TORCHRUN = {
    "RANK": "9",
    "WORLD_SIZE": "16",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "8",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
}
SRUN = {
    "SLURM_PROCID": "8",
    "SLURM_NTASKS": "16",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_NNODES": "2",
    "SLURM_JOB_ID": "77",
}
STEP = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NODEID": "3", "SLURM_STEP_NUM_NODES": "1"}
OPEN_MPI = {"RANK": "3", "SIZE": "4", "LOCAL_RANK": "1", "LOCAL_SIZE": "2"}


@pytest.mark.parametrize(
    ("environment", "launch"),
    [
        (TORCHRUN, Launch("torchrun", 9, 16, 1, 8, 1, 2)),
        (TORCHRUN | SRUN | {"TORCHELASTIC_RUN_ID": "x"}, Launch("torchrun", 9, 16, 1, 8, 1, 2, "x")),
        (SRUN, Launch("srun", 8, 16, 0, None, 1, 2, "77")),
        (SRUN | STEP, Launch("srun", 0, 1, 0, run="77")),
        (
            {f"OMPI_COMM_WORLD_{name}": value for name, value in OPEN_MPI.items()},
            Launch("mpirun", 3, 4, 1, 2),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, Launch("mpiexec", 1, 2, 0)),
        ({"RANK": "0", "SLURM_JOB_ID": "77"}, None),
    ],
)
def test_launchers(environment: dict[str, str], launch: Launch | None) -> None:
    """That of torchrun counts before that of srun, which may have started it; half a set of variables is no
    launch.
    """
    assert launch_of(environment) == launch


def test_one_process_a_host_speaks() -> None:
    """The one with local rank 0."""
    assert [Launch("srun", rank, 4, rank % 2).speaks for rank in range(4)] == [True, False, True, False]


def test_a_launcher_that_says_nonsense() -> None:
    """One line that names the launcher and the value."""
    with pytest.raises(BadInput, match=r"^torchrun set the rank to 'first', which is not a number"):
        launch_of({"RANK": "first", "WORLD_SIZE": "2", "LOCAL_RANK": "0"})


def test_srun_is_made_a_torch_group() -> None:
    """The first host of the step is where ranks meet."""
    environment = {
        "SLURM_PROCID": "9",
        "SLURM_STEP_NUM_TASKS": "16",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "1",
        "SLURM_NNODES": "2",
    }
    environment["SLURM_STEP_NODELIST"] = "gpu[07-08]"
    adopt(environment)
    wanted = {
        "RANK": "9",
        "WORLD_SIZE": "16",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "8",
        "MASTER_ADDR": "gpu07",
        "MASTER_PORT": "29500",
    }
    assert {name: environment.get(name) for name in wanted} == wanted


def test_a_batch_script_is_no_rank() -> None:
    """Slurm numbers it 0 of all tasks, but nobody else is there to meet."""
    environment = {
        "SLURM_PROCID": "0",
        "SLURM_NTASKS": "16",
        "SLURM_LOCALID": "0",
        "SLURM_JOB_NODELIST": "gpu[07-08]",
    }
    assert adopt(environment) is None
    assert "RANK" not in environment


def test_mpirun_must_be_told_where_to_meet() -> None:
    """Open MPI does not tell its ranks a host."""
    environment = {
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    }
    with pytest.raises(BadInput, match="MASTER_ADDR"):
        adopt(environment)
    environment["MASTER_ADDR"] = "here"
    assert adopt(environment) is not None
    assert environment["RANK"] == "1"
