"""The command that writes a page about a plan, a comparison or a sweep."""

from pathlib import Path

import click

from planner.cli.console import tell
from planner.cli.options import FILE, option


@click.command()
@click.argument("file", metavar="PLAN|JSON", type=FILE)
@option(
    "--validation",
    type=FILE,
    metavar="FILE",
    help="What `moeplan validate PLAN --json` printed: its measurements are shown beside the prediction.",
)
@option("-o", "--output", type=FILE, required=True, help="HTML file to write.")
def report(file: Path, validation: Path | None, output: Path) -> None:
    """Write one HTML page about a plan, complete in itself: the answer, the machine with the load of its
    links, traffic, balance, bounds, memory, what it rests on, and how to load it.

    What `moeplan compare --json` or `sweep --json` printed becomes a page of its own.

    Example: moeplan report plan.json -o report.html
    """
    from planner.base import write_atomic
    from planner.page import page_of

    write_atomic(output, page_of(file, validation))
    tell(f"wrote {output}")
