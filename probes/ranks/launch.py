"""Where a process stands among those that a launcher has started, from the environment that torchrun, srun, mpirun and their kin set."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from planner.base import BadInput
from probes.fabric.hostlist import expand_hosts

MEETING_PORT = "29500"  # torch's own default


@dataclass(frozen=True)
class Launch:
    """`local_rank` counts on this host; `node` and `nodes` count hosts where the launcher tells; `run` tells one launch from another."""

    launcher: str
    rank: int
    world: int
    local_rank: int
    local_world: int | None = None
    node: int | None = None
    nodes: int | None = None
    run: str | None = None

    def __post_init__(self) -> None:
        for name, value, count in (
            ("rank", self.rank, self.world),
            ("local rank", self.local_rank, self.local_world),
            ("node", self.node, self.nodes),
        ):
            if value is not None and not 0 <= value < (count or value + 1):
                raise BadInput(f"{self.launcher}: {name} is {value} of {count}; it counts from 0")

    @property
    def speaks(self) -> bool:
        """One process a host does the work."""
        return self.local_rank == 0


_FIELDS = ("rank", "world", "local_rank", "local_world", "node", "nodes", "run")
_LAUNCHERS = (  # torchrun first: srun or mpirun may have started it, and their variables stay
    ("torchrun", ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "TORCHELASTIC_RUN_ID")),
    ("mpirun", ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "", "", "PMIX_NAMESPACE")),
    ("srun", ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_NODEID", "SLURM_STEP_NUM_NODES SLURM_NNODES", "SLURM_JOB_ID")),
    ("mpiexec", ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", "", "")),
)  # fmt: skip


def launch_of(environment: Mapping[str, str]) -> Launch | None:
    """The launch this process belongs to, or None where it was started by hand. BadInput where a count is not a number.

    >>> launch_of({"SLURM_PROCID": "9", "SLURM_NTASKS": "16", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_NNODES": "2"}).speaks
    False
    """
    for launcher, variables in _LAUNCHERS:
        told = {
            field: value
            for field, names in zip(_FIELDS, variables, strict=True)
            if (value := _first(environment, names))
        }
        if {"rank", "world", "local_rank"} <= set(told):
            run = told.pop("run", None)
            counts = {field: _number(value, launcher, field) for field, value in told.items()}
            if counts.get("node", 0) >= counts.get("nodes", counts.get("node", 0) + 1):
                del (
                    counts["node"],
                    counts["nodes"],
                )  # a step of a larger job may count nodes of the one and of the other
            return Launch(launcher, **counts, run=run)
    return None


def adopt(environment: MutableMapping[str, str]) -> Launch | None:
    """The launch, with what torch.distributed reads put into `environment` where srun or mpirun has not. BadInput where the meeting point is not known.

    A batch script that srun has not started is no rank, although Slurm numbers it.
    """
    launch = launch_of(environment)
    if launch is None or launch.launcher == "torchrun" or launch.world == 1:
        return launch
    if launch.launcher == "srun" and "SLURM_STEP_NUM_TASKS" not in environment:
        return None
    if "MASTER_ADDR" not in environment:
        nodes = _first(environment, "SLURM_STEP_NODELIST SLURM_JOB_NODELIST")
        if launch.launcher != "srun" or nodes is None:
            raise BadInput(
                f"{launch.launcher} does not say where ranks meet; set MASTER_ADDR to the host of rank 0 for every rank, or use torchrun"
            )
        environment["MASTER_ADDR"] = expand_hosts(nodes, "SLURM_STEP_NODELIST")[0]
    environment.setdefault("MASTER_PORT", MEETING_PORT)
    environment.update(
        {"RANK": str(launch.rank), "WORLD_SIZE": str(launch.world), "LOCAL_RANK": str(launch.local_rank)}
    )
    local_world = launch.local_world or (
        launch.world // launch.nodes if launch.nodes and launch.world % launch.nodes == 0 else None
    )
    if local_world:
        environment["LOCAL_WORLD_SIZE"] = str(local_world)
    return launch


def _first(environment: Mapping[str, str], names: str) -> str | None:
    return next((environment[name] for name in names.split() if environment.get(name)), None)


def _number(value: str, launcher: str, field: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise BadInput(
            f"{launcher} set the {field.replace('_', ' ')} to {value!r}, which is not a number; start again, or unset its variables to probe this host alone"
        )
    return int(value)
