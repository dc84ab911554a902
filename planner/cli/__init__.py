"""The command line: argv to values to text. Heavy imports are inside commands, so that `--help` is quick."""

import click

from planner.cli.bench import bench
from planner.cli.budget import budget
from planner.cli.capacity import capacity
from planner.cli.check import check
from planner.cli.compare import compare
from planner.cli.console import PROGRESS, Commands
from planner.cli.emit import emit
from planner.cli.engine import engine
from planner.cli.evaluate import evaluate
from planner.cli.inputs import load, model
from planner.cli.loss import loss
from planner.cli.maps import convert
from planner.cli.pays import pays
from planner.cli.probe import import_command, probe
from planner.cli.recording import record
from planner.cli.report import report
from planner.cli.schema import schema
from planner.cli.solve import solve
from planner.cli.sweep import sweep
from planner.cli.topology import topology
from planner.cli.traffic import traffic
from planner.cli.validate import validate
from planner.cli.version import tell_version
from planner.cli.watch import watch


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=tell_version,
    help="Show the version and exit.",
)
@click.option(
    "--progress",
    type=click.Choice(["auto", "lines", "none"]),
    default="auto",
    show_default=True,
    help="How long work tells its steps on stderr: auto is a bar on a terminal, and nothing elsewhere.",
)
@click.pass_context
def main(context: click.Context, progress: str) -> None:
    """Plan where the experts of a Mixture-of-Experts model sit on your GPUs, and check the plan by running
    it.

    \b
    moeplan probe                                       what this machine is made of
    moeplan solve --model mixtral -o plan.json          which expert sits on which GPU
    moeplan emit plan.json --engine sglang -o out       what the engine loads, and how to start it
    moeplan validate plan.json                          run the plan's own dispatch, compute, combine
    """  # noqa: D301 - click wants the backspace itself: it keeps the lines below apart
    context.meta[PROGRESS] = progress


COMMANDS = (
    *(topology, probe, import_command, model, load, engine),
    *(solve, compare, sweep, evaluate, loss, emit, check, convert, traffic, validate),
    *(report, bench, record, watch, capacity, budget, pays, schema),
)
for command in COMMANDS:
    main.add_command(command)
