"""The command about capacity factors."""

from pathlib import Path

import click

from planner.cli.console import say
from planner.cli.options import json_option, measured_load_option, model_option, option, ranks_option


@click.command()
@model_option
@measured_load_option
@option("--ep", type=int, required=True, help="Expert-parallel size.")
@option(
    "--target", metavar="SHARE", help="Largest share of a layer's assignments that may be dropped, like 0.1%."
)
@option("--tokens-per-rank", type=int, default=4096, help="Tokens each source rank brings to a step.")
@ranks_option
@json_option
def capacity(
    model_name: str,
    load_files: tuple[Path, ...],
    ep: int,
    target: str | None,
    tokens_per_rank: int,
    ranks: str | None,
    as_json: bool,
) -> None:
    """Share of assignments that Megatron-Core, DeepSpeed and Tutel drop at each capacity factor, and the
    least factor for a target.

    Example: moeplan capacity --model mixtral --ep 8 --target 0.1%
    """
    from planner.load import capacity_report, parse_share
    from planner.model import find_model
    from planner.planning import find_load

    model = find_model(model_name)
    load = find_load(load_files, model, ranks=ranks)
    report = capacity_report(model, load, ep, tokens_per_rank, parse_share(target) if target else None)
    say(report.text(), report.to_dict(), as_json)
