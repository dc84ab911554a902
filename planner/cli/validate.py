"""The command that runs a plan's dispatch."""

import os
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import No, say
from planner.cli.options import FILE, count_or, device_option, json_option, option


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@option("--layers", default="4", metavar="N|all", help="How many layers to run: the busiest ones.")
@option("--tokens", type=int, default=64, help="Tokens each rank brings to a step.")
@option("--hidden", type=int, help="Elements of a token. [default: 64 on a CPU, the model's own on GPUs]")
@option("--repeats", type=int, default=5, help="Timed steps per layer and placement.")
@option("--seed", type=int, default=0)
@device_option("auto: GPUs where there is one for every rank.")
@option(
    "--timeout",
    "timeout_seconds",
    type=float,
    default=120.0,
    help="Seconds after which a silent rank ends the run.",
)
@option(
    "--calibrate",
    "calibration",
    type=FILE,
    metavar="FILE",
    help="Run more loads and placements, fit the machine's start-up and efficiency to some and judge them on "
    "the others; write them to FILE.",
)
@option("--emulate", is_flag=True, help="With --calibrate: in a cluster of network namespaces, links scaled.")
@json_option
def validate(
    plan_file: Path, layers: str, as_json: bool, calibration: Path | None, emulate: bool, **flags: Any
) -> None:
    """Run the plan's own dispatch, expert compute and combine, one process per rank; exit 0 only if every
    check holds.

    Example: moeplan validate plan.json

    Example: moeplan validate plan.json --emulate --calibrate calibration.json --tokens 512 --hidden 512
    """
    from planner.engines import default_placement
    from planner.plan import read_plan
    from planner.report.validation import validation_report
    from probes.dispatch.run import RunFailed
    from probes.dispatch.validation import Contender, Settings
    from probes.dispatch.validation import validate as run_plan
    from probes.ranks.launch import adopt

    adopt(os.environ)
    problem, placement, value = read_plan(plan_file)
    default = default_placement(value.get("engine"), problem)
    settings = Settings(layers=count_or("all", layers, "--layers"), **flags)
    if calibration is not None:
        _calibrate(problem, {"plan": placement, "default": default}, settings, calibration, emulate, as_json)
        return
    if emulate:
        raise BadInput("--emulate: only with --calibrate")
    contenders = {"plan": Contender(problem, placement), "default": Contender(problem, default)}
    try:
        outcome = run_plan(contenders, settings)
    except RunFailed as failure:
        raise No(f"{plan_file}: {failure}") from failure
    if outcome.report.rank == 0:  # the other ranks of a launched group leave the word to it
        say(validation_report(outcome), outcome.to_dict(), as_json)
    if not outcome.ok:
        raise No(f"{plan_file}: {outcome.failed[0]}")


def _calibrate(
    problem: Any, placements: Any, settings: Any, output: Path, emulate: bool, as_json: bool
) -> None:
    """Runs, fits, writes the file and shows the errors before and after."""
    from datetime import datetime, timezone

    from planner.report.calibration import calibration_report
    from planner.topology import calibration_to_dict, write_calibration
    from probes.calibration.run import calibrate_machine
    from probes.dispatch.run import RunFailed

    date = datetime.now(timezone.utc).date().isoformat()
    try:
        outcome = calibrate_machine(problem, placements, settings, date, emulate=emulate)
    except RunFailed as failure:
        raise No(f"--calibrate: {failure}") from failure
    if outcome is None:  # the other ranks of a launched group leave the word to the first
        return
    write_calibration(outcome.calibration, output)
    say(calibration_report(outcome), outcome.to_dict(calibration_to_dict(outcome.calibration)), as_json)
    if not as_json:
        click.echo(f"wrote {output}")
