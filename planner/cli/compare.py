"""The command that puts plans, maps, machines or engines side by side."""

from pathlib import Path
from typing import Any

import click

from planner.cli.console import say
from planner.cli.options import (
    FILE,
    calibration_option,
    json_option,
    load_option,
    map_option,
    option,
    ranks_option,
)


@click.command()
@click.argument("files", metavar="PLAN [PLAN|MAP]...", type=FILE, nargs=-1, required=True)
@option(
    "--topology",
    "topologies",
    multiple=True,
    metavar="NAME[:NODES[xGPUS]]|FILE",
    help="Twice or more: the plan on these machines. Once: the machine of all sides.",
)
@calibration_option
@option("--engine", "engines", multiple=True, help="Twice or more: the plan under these. Once: of all sides.")
@option("--model", "model_name", help="Model of maps that come without a plan.")
@load_option("Load to judge all sides on; the first plan's held-out load where it is not given.")
@map_option
@ranks_option
@option("--phase", type=click.Choice(["decode", "prefill"]), help="[default: the first plan's]")
@option("--tokens-per-rank", type=int, help="Tokens each GPU brings to a step. [default: the plans' own]")
@json_option
def compare(
    files: tuple[Path, ...],
    topologies: tuple[str, ...],
    engines: tuple[str, ...],
    model_name: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Put plans, engine maps, machines or engines side by side on the same load: time by part, balance,
    traffic, memory, moves. A difference within the model's error is called a tie.

    \b
    Example: moeplan compare old.json new.json --load tomorrow.csv
    Machines: moeplan compare plan.json --topology hgx-h100:2 --topology hgx-h200:2
    Engines: moeplan compare plan.json --engine sglang --engine vllm
    """  # noqa: D301 - click wants the backspace itself: it keeps the lines apart
    from planner.planning import Anew, CompareRequest
    from planner.planning import compare as compared
    from planner.report.comparison import comparison_report, comparison_to_dict

    found = compared(CompareRequest(files, topologies, engines, model_name, Anew(**asked)))
    say(comparison_report(found), comparison_to_dict(found), as_json)
