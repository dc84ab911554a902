"""The command that runs a plan's dispatch."""

import os
from pathlib import Path
from typing import Any

import click

from planner.cli.console import No, say
from planner.cli.options import FILE, count_or, device_option, hosts_option, json_option, option


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@option("--layers", default="4", metavar="N|all", help="How many layers to run: the busiest ones.")
@option("--tokens", type=int, default=64, help="Tokens each rank brings to a step.")
@option("--hidden", type=int, help="Elements of a token. [default: 64 on a CPU, the model's own on GPUs]")
@option("--repeats", type=int, default=5, help="Timed steps per layer and placement.")
@option("--seed", type=int, default=0)
@device_option("auto: GPUs where there is one for every rank.")
@option(
    "--virtual",
    is_flag=True,
    help="One process plays all ranks, in memory: for plans larger than this machine. Times compute alone.",
)
@option(
    "--kernels",
    type=click.Choice(["auto", "torch", "deepep", "nccl-ep"]),
    default="auto",
    help="What sends on GPUs; auto: the engines' kernels of the plan's transport where they are installed.",
)
@option("--cuda-graph", is_flag=True, help="On GPUs: replay each phase as a CUDA graph, where it can be.")
@hosts_option("Where launched: hosts in the plan's node order. [default: the topology's own names]")
@option(
    "--timeout",
    "timeout_seconds",
    type=float,
    default=120.0,
    help="Seconds after which a silent rank ends the run.",
)
@json_option
def validate(plan_file: Path, layers: str, as_json: bool, **flags: Any) -> None:
    """Run the plan's own dispatch, expert compute and combine, one process per rank; exit 0 only if every
    check holds.

    Example: moeplan validate plan.json
    """
    from planner.engines import default_placement
    from planner.launch import hosts_of
    from planner.plan import read_plan
    from planner.report.validation import validation_report
    from probes.dispatch.run import RunFailed
    from probes.dispatch.validation import Contender, Settings
    from probes.dispatch.validation import validate as run_plan
    from probes.ranks.launch import adopt

    adopt(os.environ)
    problem, placement, value = read_plan(plan_file)
    default = default_placement(value.get("engine"), problem)
    contenders = {"plan": Contender(problem, placement), "default": Contender(problem, default)}
    flags["hosts"] = hosts_of(problem.topology, flags["hosts"])
    try:
        outcome = run_plan(contenders, Settings(layers=count_or("all", layers, "--layers"), **flags))
    except RunFailed as failure:
        raise No(f"{plan_file}: {failure}") from failure
    if outcome.report.rank == 0:  # the other ranks of a launched group leave the word to it
        say(validation_report(outcome), outcome.to_dict(), as_json)
    if not outcome.ok:
        raise No(f"{plan_file}: {outcome.failed[0]}")
