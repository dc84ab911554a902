"""The command about replicas over layers."""

from typing import Any

import click

from planner.cli.console import FILE, json_option, map_option, progress_bar, say


@click.command()
@click.option("--model", "model_name", required=True, help="Catalogue name or a Hugging Face config.json.")
@click.option(
    "--topology",
    "topology_text",
    metavar="NAME[:NODES[xGPUS]]|FILE",
    help="Machine; hgx-h100:4x2 is two GPUs of each of four nodes.",
)
@click.option(
    "--load",
    "load_files",
    multiple=True,
    type=FILE,
    help="Measured load; the one shipped for the model, or an even one, where it is not given.",
)
@map_option
@click.option(
    "--total-redundant",
    type=click.IntRange(min=0),
    required=True,
    metavar="N",
    help="Redundant experts of all layers together.",
)
@click.option("--ep", type=int, help="Expert-parallel size; all GPUs of the topology where it is not given.")
@click.option("--engine", help="Engine whose replica rule and transport are used.")
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option(
    "--tokens-per-rank",
    type=int,
    help="Tokens each GPU brings to a step. [default: 128 in decode, 4096 in prefill]",
)
@click.option("--transport", help="slot, rank, node or allgather; the engine's own where it is not given.")
@click.option(
    "--held-out",
    type=float,
    default=1 / 3,
    show_default="1/3",
    help="Share of the load's windows kept for judging, not for fitting.",
)
@click.option(
    "--kv-floor",
    default="0 B",
    show_default=True,
    metavar="SIZE",
    help="Memory of each GPU to keep free; a fifth of it where none is given.",
)
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
