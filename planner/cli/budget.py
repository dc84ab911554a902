"""The command about replicas over layers."""

from typing import Any

import click

from planner.cli.console import progress_bar, say
from planner.cli.options import (
    asked_machine_option,
    ep_option,
    held_out_option,
    json_option,
    kv_floor_option,
    map_option,
    measured_load_option,
    model_option,
    option,
    step_options,
    transport_option,
)


@click.command()
@model_option
@asked_machine_option
@measured_load_option
@map_option
@option(
    "--total-redundant",
    type=click.IntRange(min=0),
    required=True,
    metavar="N",
    help="Redundant experts of all layers together.",
)
@ep_option
@option("--engine", help="Engine whose replica rule and transport are used.")
@step_options
@transport_option
@held_out_option
@kv_floor_option("Memory of each GPU to keep for the KV cache, in place of what the planned batch takes.")
@json_option
def budget(
    model_name: str,
    topology_text: str | None,
    total_redundant: int,
    kv_floor: str,
    as_json: bool,
    **flags: Any,
) -> None:
    """Spread a total of redundant experts over layers by what each slot gains, and compare with equal rows.

    Example: moeplan budget --model olmoe --topology hgx-h100:2 --total-redundant 512
    """
    from planner.base import parse_bytes
    from planner.planning import PlanRequest, budget_report

    request = PlanRequest(model_name, topology_text, kv_floor_bytes=parse_bytes(kv_floor), **flags)
    with progress_bar("budget") as progress:
        report = budget_report(request, total_redundant, progress)
    say(report.text(), report.to_dict(), as_json)
