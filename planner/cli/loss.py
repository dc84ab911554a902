"""The command that says what a plan is after losses."""

from pathlib import Path

import click

from planner.cli.console import say
from planner.cli.options import FILE, json_option, load_option, option


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@option(
    "--survive",
    "kinds",
    metavar="F|node",
    multiple=True,
    help="Losses to look at: any F GPUs, or any one node. Repeatable. [default: 1 and node]",
)
@load_option("Load to judge the plan on; the plan's own where it is not given.")
@option("--engine", help="Engine that serves the plan; the plan's own where it is not given.")
@json_option
def loss(
    plan_file: Path, kinds: tuple[str, ...], load_files: tuple[Path, ...], engine: str | None, as_json: bool
) -> None:
    """What is left of a plan when GPUs, or a node, are lost: tokens/s before and after, experts without a
    slot, what the engine does, and the fewest redundant experts that survive it.

    Example: moeplan loss plan.json --survive node
    """
    from planner.planning import look_at_losses
    from planner.problem import parse_survival
    from planner.report.losses import losses_report, losses_to_dict

    survive = tuple(parse_survival(kind) for kind in dict.fromkeys(kinds))
    found = look_at_losses(plan_file, survive, load_files, engine)
    say(losses_report(found), losses_to_dict(found), as_json)
