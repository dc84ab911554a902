"""What a person asks: the flags of `moeplan solve`, as text or as values that were already read."""

from dataclasses import dataclass
from pathlib import Path

from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem import Survival
from planner.topology import Topology


@dataclass(frozen=True)
class PlanRequest:
    """The flags of `moeplan solve`; None is a flag that was not given."""

    model: str | ModelSpec
    topology: str | Topology | None = None
    load_files: tuple[Path, ...] | LoadProfile = ()
    map_file: Path | None = None  # the map the load was recorded under, where it counts slots
    ranks: str | None = None  # what identical load files are: same, one counter; sum, several
    redundant: int | None = None  # None: chosen by predicted time
    ep: int | None = None
    without: str | None = None  # GPUs that are lost: '3,7', '0-3', 'node1' or a node's name
    engine: str | None = None
    method: str = "auto"
    seed: int = 0
    budget_seconds: float | None = None
    phase: str = "decode"
    tokens_per_rank: int | None = None
    context: int | None = None  # tokens of a request, prompt and output together
    isl: int | None = None  # of its prompt
    osl: int | None = None  # of its output
    attention_tp: int = 1
    transport: str | None = None
    replica_rule: str | None = None
    held_out: float = 1 / 3
    kv_floor_bytes: float = 0.0
    survive: Survival | None = None
    objective: str = "mean"
    robust: bool = False
    gpu_speed: str | None = None
    resplittable: bool = False
    previous: Path | None = None  # the plan or map that runs: the answer is a re-plan of it
    most_moves: str | None = None  # '20', or '7%' of all slots
    prove: bool = False
    workers: int | None = None  # None: as many processes as pay
    ray: str | None = None  # address of a cluster to work on
    calibrations: tuple[Path, ...] = ()  # put on the topology, beside what it has
