"""The command that says what our files hold, as JSON Schema."""

from typing import TYPE_CHECKING

import click

from planner.cli.console import say

if TYPE_CHECKING:
    from planner.schema import Kind

NAMES = ("plan", "topology", "calibration", "load", "emission", "traffic", "seats", "probe", "measure")


@click.command()
@click.argument("kind", type=click.Choice(NAMES))
def schema(kind: str) -> None:
    """Print what a kind of file holds, as JSON Schema (draft 2020-12): files are read by the same words.

    Example: moeplan schema topology
    """
    from planner.schema import published

    say("", published(kind, kinds()[kind]), as_json=True)


def kinds() -> "dict[str, Kind]":
    """Every kind of file of ours, by its name on the command line."""
    from planner.exchange import TRAFFIC
    from planner.load import PUBLISHED
    from planner.maps import EMISSION
    from planner.plan import PLAN
    from planner.topology import CALIBRATION, SEATS, TOPOLOGY
    from probes.measure.file import MEASURE
    from probes.record.record_shape import PROBE

    found = (PLAN, TOPOLOGY, CALIBRATION, PUBLISHED, EMISSION, TRAFFIC, SEATS, PROBE, MEASURE)
    return dict(zip(NAMES, found, strict=True))
