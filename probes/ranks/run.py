"""Run one task over ranks: started here, or by a launcher that has started this process among others.

No torch here. On one machine the ranks are started here. On several the user starts the same command
everywhere with torchrun or srun; each process then finds RANK and WORLD_SIZE in its environment and works as
a rank (`probes.ranks.launched`). In a cluster that this program itself has made they are started there.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from probes.ranks.in_cluster import Cluster, run_in
from probes.ranks.launch import is_launched
from probes.ranks.party import Task
from probes.ranks.resources import available_bytes, check_memory
from probes.ranks.start import run_here, terminable


def run_over_ranks(
    task: Task, verb: str, save: Callable[[Path], None], module: str, cluster: Cluster | None = None
) -> tuple[int, list[str]]:
    """The rank of this process (0 speaks), and what every rank found. RunFailed names the ranks that did not.

    Ranks started here read their task from the folder that `save` has filled, by `task_in` of the module. In
    a `cluster` each is started in its place there, whatever launcher has started this process.
    """
    if cluster is None and is_launched():
        from probes.ranks.launched import run_launched

        return run_launched(task)
    party = task.party
    if party.device == "cpu":
        check_memory(party.ranks, available_bytes(), verb)
    with tempfile.TemporaryDirectory(prefix=f"moeplan-{verb}-") as name, terminable():
        save(Path(name))
        if cluster is not None:
            return 0, run_in(cluster, Path(name), module, party.ranks, party.timeout_seconds)
        return 0, run_here(Path(name), module, party.ranks, party.timeout_seconds)
