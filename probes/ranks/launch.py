"""Where a process stands among those that a launcher has started, from its environment.

That is what torchrun, srun, mpirun and their kin set.
"""

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from planner.base import BadInput
from probes.fabric.hostlist import expand_hosts

MEETING_PORT = 29500  # torch's own default; a Slurm job takes one of its own above it
MEETING_PORTS = 2000  # below the ports that Linux hands out by itself


@dataclass(frozen=True)
class Launch:
    """`local_rank` counts on this host; `node` and `nodes` count hosts where the launcher tells.

    `run` tells one launch from another.
    """

    launcher: str
    rank: int
    world: int
    local_rank: int
    local_world: int | None = None
    node: int | None = None
    nodes: int | None = None
    run: str | None = None

    def __post_init__(self) -> None:
        self._check("rank", self.rank, self.world)
        self._check("local rank", self.local_rank, self.local_world)
        self._check("node", self.node, self.nodes)

    def _check(self, name: str, value: int | None, count: int | None) -> None:
        if value is not None and not 0 <= value < (count or value + 1):
            raise BadInput(f"{self.launcher}: {name} is {value} of {count}; it counts from 0")

    @property
    def speaks(self) -> bool:
        """One process a host does the work."""
        return self.local_rank == 0

    @property
    def ranks_per_host(self) -> int | None:
        """None where the launcher does not tell it, and it does not follow."""
        if self.local_world or not self.nodes or self.world % self.nodes:
            return self.local_world or None
        return self.world // self.nodes


_VARIABLES = {  # torchrun first: srun or mpirun may have started it, and their variables stay
    "torchrun": {
        "rank": "RANK",
        "world": "WORLD_SIZE",
        "local_rank": "LOCAL_RANK",
        "local_world": "LOCAL_WORLD_SIZE",
        "node": "GROUP_RANK",
        "nodes": "GROUP_WORLD_SIZE",
        "run": "TORCHELASTIC_RUN_ID",
    },
    "mpirun": {
        "rank": "OMPI_COMM_WORLD_RANK",
        "world": "OMPI_COMM_WORLD_SIZE",
        "local_rank": "OMPI_COMM_WORLD_LOCAL_RANK",
        "local_world": "OMPI_COMM_WORLD_LOCAL_SIZE",
        "run": "PMIX_NAMESPACE",
    },
    "srun": {
        "rank": "SLURM_PROCID",
        "world": "SLURM_STEP_NUM_TASKS SLURM_NTASKS",
        "local_rank": "SLURM_LOCALID",
        "node": "SLURM_NODEID",
        "nodes": "SLURM_STEP_NUM_NODES SLURM_NNODES",
        "run": "SLURM_JOB_ID",
    },
    "mpiexec": {
        "rank": "PMI_RANK",
        "world": "PMI_SIZE",
        "local_rank": "MPI_LOCALRANKID",
        "local_world": "MPI_LOCALNRANKS",
    },
}


def launch_of(environment: Mapping[str, str]) -> Launch | None:
    """The launch this process belongs to, or None where it was started by hand.

    BadInput where a count is not a number.

    >>> rank_9_of_16 = {"SLURM_PROCID": "9", "SLURM_NTASKS": "16", "SLURM_LOCALID": "1"}
    >>> launch_of(rank_9_of_16 | {"SLURM_NODEID": "1", "SLURM_NNODES": "2"}).speaks
    False
    """
    for launcher, variables in _VARIABLES.items():
        values = {field: _first(environment, names) for field, names in variables.items()}
        told = {field: value for field, value in values.items() if value}
        if {"rank", "world", "local_rank"} <= set(told):
            run = told.pop("run", None)
            counts = {field: _number(value, launcher, field) for field, value in told.items()}
            if counts.get("node", 0) >= counts.get("nodes", counts.get("node", 0) + 1):
                # a step of a larger job may count nodes of the one and of the other
                del counts["node"], counts["nodes"]
            return Launch(launcher, **counts, run=run)
    return None


def adopt(environment: MutableMapping[str, str]) -> Launch | None:
    """The launch, with what torch.distributed reads put into `environment` where srun or mpirun has not.

    BadInput where the meeting point is not known. A batch script that srun has not started is no rank,
    although Slurm numbers it.
    """
    launch = launch_of(environment)
    if launch is None or launch.launcher == "torchrun" or launch.world == 1:
        return launch
    if launch.launcher == "srun" and "SLURM_STEP_NUM_TASKS" not in environment:
        return None
    if "MASTER_ADDR" not in environment:
        environment["MASTER_ADDR"] = _meeting_host(environment, launch)
    environment.setdefault("MASTER_PORT", str(_meeting_port(environment)))
    environment["RANK"], environment["WORLD_SIZE"] = str(launch.rank), str(launch.world)
    environment["LOCAL_RANK"] = str(launch.local_rank)
    if launch.ranks_per_host:
        environment["LOCAL_WORLD_SIZE"] = str(launch.ranks_per_host)
    return launch


def _meeting_port(environment: Mapping[str, str]) -> int:
    """Two steps that run at the same time on one host do not meet each other.

    >>> _meeting_port({"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "1"})
    29578
    """
    numbers = [environment.get(name, "0") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")]
    counts = [int(number) for number in numbers if number.isascii() and number.isdigit()]
    return MEETING_PORT + sum(counts) % MEETING_PORTS


def _meeting_host(environment: Mapping[str, str], launch: Launch) -> str:
    nodes = _first(environment, "SLURM_STEP_NODELIST SLURM_JOB_NODELIST")
    if launch.launcher != "srun" or nodes is None:
        raise BadInput(
            f"{launch.launcher} does not say where ranks meet; "
            "set MASTER_ADDR to the host of rank 0 for every rank, or use torchrun"
        )
    return expand_hosts(nodes, "SLURM_STEP_NODELIST")[0]


def run_id(environment: Mapping[str, str]) -> str:
    """What tells this launch from another that meets at the same port; empty where nothing does.

    >>> run_id({"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2"})
    '77.2'
    """
    names = ("TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID")
    return ".".join(environment[name] for name in names if environment.get(name))


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    return {"RANK", "WORLD_SIZE"} <= os.environ.keys()


def launched_world(verb: str) -> int:
    """World size from the environment. BadInput where it is no number or the meeting point is missing."""
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise BadInput(
            f"RANK is set but {missing[0]} is not; start {verb} with torchrun, "
            "or set it for every rank (unset RANK to run on this machine alone)"
        )
    given = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_PORT")}
    try:
        counts = {name: int(value) for name, value in given.items()}
    except ValueError as error:
        told = ", ".join(f"{name} is {value!r}" for name, value in given.items())
        raise BadInput(f"{told}; all must be whole numbers") from error
    return counts["WORLD_SIZE"]


def _first(environment: Mapping[str, str], names: str) -> str | None:
    return next((environment[name] for name in names.split() if environment.get(name)), None)


def _number(value: str, launcher: str, field: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise BadInput(
            f"{launcher} set the {field.replace('_', ' ')} to {value!r}, which is not a number; "
            "start again, or unset its variables to probe this host alone"
        )
    return int(value)
