"""How many hosts a benchmark shows, where one host is described and nobody says how many there are."""

from collections import Counter
from collections.abc import Sequence

from planner.topology import LARGEST_GPUS
from probes.base.facts import MeasureFacts
from probes.machine.host import Host, Notes


def nodes_of_runs(hosts: Sequence[Host], runs: Sequence[MeasureFacts], notes: Notes) -> int | None:
    """The hosts of the largest run on all GPUs of hosts like the one described; None where none shows more.

    It is said: that they are alike is an assumption.
    """
    if len(hosts) != 1:
        return None
    gpus = len(hosts[0].gpus)
    shown = {run.source: Counter(run.hosts) for run in runs if run.hosts}
    fitting = {source: ranks for source, ranks in shown.items() if set(ranks.values()) == {gpus}}
    if not fitting:
        _ask(gpus, [run for run in runs if not run.hosts], notes)
        return None
    source = max(fitting, key=lambda one: len(fitting[one]))
    names = tuple(fitting[source])
    if not 1 < len(names) <= LARGEST_GPUS // gpus:
        return None
    listed = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    alike = f"{len(names)} nodes like {hosts[0].title} are taken; say --nodes if that is wrong"
    notes.warnings.append(f"{source} ran on {len(names)} hosts ({listed}), one is described: {alike}")
    return len(names)


def _ask(gpus: int, runs: Sequence[MeasureFacts], notes: Notes) -> None:
    """A run that names no hosts but has the ranks of several."""
    for run in runs:
        if run.ranks > gpus and run.ranks % gpus == 0:
            over = f"{run.source} ran over {run.ranks} ranks and does not say on which hosts"
            notes.unknown.append(
                f"{over}; give --nodes {run.ranks // gpus} if all are like the one described"
            )
