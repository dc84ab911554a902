"""The small task over ranks, as a command: `python -m tests.probes.faults.drive run WAY FAULT RANKS SECONDS`.

It speaks and ends as moeplan's own commands do. Where a launcher has started it, it is one of the ranks.
"""

import os
import time
from contextlib import nullcontext
from pathlib import Path

import click

from planner.cli.console import Commands
from probes.ranks.early import taking_part
from probes.ranks.launch import is_launched
from probes.ranks.run import run_over_ranks
from tests.probes.faults import task

BEGUN = "begun"


@click.group(cls=Commands)
def main() -> None:
    """The group gives the one line and the exit code."""


@main.command()
@click.argument("way")
@click.argument("fault_text")
@click.argument("ranks", type=int)
@click.argument("seconds", type=float)
def run(way: str, fault_text: str, ranks: int, seconds: float) -> None:
    """Say how many ranks found something."""
    fault = task.Fault.of(fault_text)
    with taking_part(), cluster_of(way, ranks) as cluster:
        if is_launched():
            from probes.ranks.launched import Told

            rank = int(os.environ["RANK"])
            Told.enter = task.entering(Told.enter, fault, rank)  # type: ignore[method-assign]
            task.misbehave(fault, rank, "start")

        def save(folder: Path) -> None:
            (folder / "job").write_text(f"{fault}\n{ranks}\n{seconds}")

        job = task.task(fault, ranks, seconds)
        click.echo(f"{BEGUN} {time.monotonic()}", err=True)  # from here on the limit counts
        rank, texts = run_over_ranks(job, "faults", save, task.__name__, cluster)
    if rank == 0:
        click.echo(f"found {len(texts)}")


def cluster_of(way: str, ranks: int):  # type: ignore[no-untyped-def]  # noqa: ANN201 - a cluster or None
    if way != "emulated":
        return nullcontext()
    from probes.emulation.flat import flat_cluster
    from probes.emulation.namespaces import emulated

    return emulated(flat_cluster(ranks, 1, 100e6, 100e6))


if __name__ == "__main__":
    main()
