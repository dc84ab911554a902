"""Commands about serving engines: which are known, and whether one would serve a question."""

from typing import Any

import click

from planner.cli.completion import complete_engine
from planner.cli.console import say
from planner.cli.options import json_option, option, request_options


@click.group()
def engine() -> None:
    """Serving engines: what is known of them, and whether they would serve."""


@engine.command("list")
@json_option
def list_engines(as_json: bool) -> None:
    """Engines that `emit` writes for.

    Example: moeplan engine list
    """
    from planner.engines import engine_names, find_engine
    from planner.report.serving import engine_value, engines_table

    values = [engine_value(name, find_engine(name)) for name in engine_names()]
    say(engines_table(values), values, as_json)


@engine.command()
@click.argument("name", metavar="ENGINE", shell_complete=complete_engine)
@option("--model", default="deepseek-v3", help="Catalogue name or a config.json.")
@option("--topology", default="hgx-h100:2", help="Preset with counts, or a topology file.")
@option("--ep", type=int, help="Expert-parallel size.")
@option("--redundant", type=int, help="Redundant experts. [default: the fewest that divide]")
@option("--phase", type=click.Choice(["decode", "prefill"]), default="decode")
@option("--tokens-per-rank", type=int, help="Tokens each GPU brings to a step.")
@request_options
@option("--role", type=click.Choice(["mixed", "prefill", "decode"]), default="mixed")
@option("--engine-version", help="Release that will serve.")
@json_option
def show(name: str, role: str, engine_version: str | None, as_json: bool, **asked: Any) -> None:
    """Would ENGINE serve this model on this machine, and with which flags? Each rule with its source; exit 1
    where it would not.

    Example: moeplan engine show sglang --model qwen3-30b-a3b --topology hgx-h100:1
    """
    from planner.cli.console import No
    from planner.planning import PlanRequest, would_serve
    from planner.report.serving import verdict_report, verdict_value

    serving = would_serve(PlanRequest(engine=name, **asked), engine_version, role)
    say(verdict_report(serving), verdict_value(serving), as_json)
    if serving.verdict.refused:
        raise No(f"{serving.verdict.engine} would not serve this: {serving.verdict.refused[0].text}")
