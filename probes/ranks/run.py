"""Run one task over ranks: started here, or by a launcher that has started this process among others.

No torch here. On one machine the ranks are started here, on its own network or in an emulated cluster. On
several the user starts the same command everywhere with torchrun or srun; each process then finds RANK and
WORLD_SIZE in its environment and works as a rank (`probes.ranks.launched`).
"""

import os
from collections.abc import Callable
from pathlib import Path

from probes.ranks.keep import kept
from probes.ranks.launch import is_launched
from probes.ranks.party import Limit, RunFailed, Task
from probes.ranks.resources import available_bytes, check_memory
from probes.ranks.start import Cluster, make_room, run_here
from probes.ranks.stop import stoppable

PARENT = os.getppid()  # as early as can be: whether it has gone is asked after torch has been imported


def run_over_ranks(
    task: Task, verb: str, save: Callable[[Path], None], module: str, cluster: Cluster | None = None
) -> tuple[int, list[str]]:
    """The rank of this process (0 speaks), and what every rank found. RunFailed names the ranks that did not.

    Ranks started here read their task from the folder that `save` has filled, by `task_in` of the module. In
    a `cluster` each is started in its place there, whatever launcher has started this process.
    """
    party = task.party
    limit = Limit.from_now(party.timeout_seconds)
    if is_launched() and cluster is None:
        from probes.ranks.launched import run_launched

        return run_launched(task, limit, PARENT)
    if party.device == "cpu":
        check_memory(party.ranks, available_bytes(), verb)
    with stoppable(), kept(f"moeplan-{verb}-") as here:
        try:
            save(here.folder)
            make_room(here.folder, party.ranks)
        except OSError as error:
            why = f"the job cannot be written to {here.folder} ({error.strerror})"
            raise RunFailed(f"{why}; set TMPDIR to a folder with room") from error
        return 0, run_here(here, module, party.ranks, limit, cluster)
