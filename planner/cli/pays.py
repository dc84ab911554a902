"""The command that says whether balancing pays."""

from pathlib import Path
from typing import Any

import click

from planner.cli.console import progress_bar, say
from planner.cli.options import (
    asked_machine_option,
    calibration_option,
    count_or,
    ep_option,
    held_out_option,
    json_option,
    kv_floor_option,
    load_option,
    map_option,
    model_option,
    option,
    options,
    ranks_option,
    request_options,
    step_options,
    transport_option,
)

online_options = options(
    option(
        "--interval",
        "interval_steps",
        type=int,
        metavar="STEPS",
        help="Steps from one rearrangement to the next. [default: the engine's]",
    ),
    option(
        "--look-back",
        "look_back_steps",
        type=int,
        metavar="STEPS",
        help="Steps whose load the balancer looks at. [default: the engine's]",
    ),
    option(
        "--stops/--overlaps",
        "stops",
        default=None,
        show_default=False,
        help="Whether the server waits for the weights. [default: as the engine does]",
    ),
    option(
        "--stall",
        "stall_seconds",
        type=float,
        metavar="SECONDS",
        help="What one rearrangement takes, as the engine's log says. [default: predicted]",
    ),
    option(
        "--window-steps",
        type=float,
        metavar="STEPS",
        help="Steps that each window of the load stands for. [default: by its tokens]",
    ),
)


@click.command()
@model_option
@asked_machine_option
@calibration_option
@load_option("Measured load, several windows of it; the first are fitted, the last judge. Repeatable.")
@map_option
@ranks_option
@option(
    "--redundant", metavar="N|auto", default="auto", help="Redundant experts of the plans that have replicas."
)
@ep_option
@option("--engine", help="Engine that would serve: its default, rule, transport and online balancer.")
@option("--method", default="auto", help="How the static plans are found, as in solve.")
@step_options
@request_options
@transport_option
@held_out_option
@kv_floor_option("Memory of each GPU to keep for the KV cache, like '20 GB'.")
@online_options
@json_option
def pays(model_name: str, redundant: str, kv_floor: str, as_json: bool, **flags: Any) -> None:
    """Does balancing pay? Default, permutation, static plan, online EPLB and perfect balance, side by side.

    Example: moeplan pays --model olmoe --topology hgx-h100 --load counts.npz --engine vllm
    """
    from planner.base import parse_bytes
    from planner.planning import PlanRequest, Rebalancing
    from planner.planning import pays as answered
    from planner.report.pays import pays_report, pays_to_dict

    rebalancing = Rebalancing(**{name: flags.pop(name) for name in Rebalancing.__dataclass_fields__})
    load_files: tuple[Path, ...] = flags.pop("load_files")
    request = PlanRequest(
        model_name,
        flags.pop("topology_text"),
        load_files,
        redundant=count_or("auto", redundant, "--redundant"),
        kv_floor_bytes=parse_bytes(kv_floor),
        **flags,
    )
    with progress_bar("pays") as progress:
        found = answered(request, rebalancing, progress)
    say(pays_report(found), pays_to_dict(found), as_json)
