"""The command that runs a plan's dispatch."""

import os
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import No, say, tell
from planner.cli.options import (
    FILE,
    count_or,
    details_option,
    device_option,
    hosts_option,
    json_option,
    option,
)


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@option("--layers", default="4", metavar="N|all", help="How many layers to run: the busiest ones.")
@option(
    "--emulate",
    is_flag=False,
    flag_value="",
    metavar="[TOPOLOGY]",
    help="Run in a cluster emulated here, with the links of the plan's machine or of this preset or file.",
)
@option(
    "--tokens",
    type=int,
    help="Tokens each rank brings to a step. [default: 64; emulated: what a phase needs]",
)
@option(
    "--hidden",
    type=int,
    help="Elements of a token. [default: 64 on a CPU, 512 emulated, the model's own on GPUs]",
)
@option("--repeats", type=int, default=5, help="Timed steps per layer and placement.")
@option("--seed", type=int, default=0)
@option(
    "--trace",
    "trace_files",
    multiple=True,
    type=FILE,
    help="Trace whose tokens are sent, where it is the plan's own the held-out ones. "
    "[default: the rows beside the plan, else drawn by its load]",
)
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
    "--timeout", "timeout_seconds", type=float, default=120.0, help="Seconds that the whole run may take."
)
@option(
    "--against",
    "against_files",
    multiple=True,
    type=FILE,
    metavar="PLAN",
    help="Another plan to run in turns with this one and the engine's default; repeatable.",
)
@option(
    "--tolerance",
    type=float,
    metavar="SHARE",
    help="How far seconds may be from the prediction, 0.1 for 10 %. [default: what the prediction's own "
    "error and the noise come to]",
)
@option(
    "--calibrate",
    "calibration",
    type=FILE,
    metavar="FILE",
    help="Run more loads and placements, fit the machine's start-up and efficiency to some and judge them on "
    "the others; write them to FILE.",
)
@details_option
@json_option
def validate(
    plan_file: Path,
    layers: str,
    emulate: str | None,
    against_files: tuple[Path, ...],
    trace_files: tuple[Path, ...],
    calibration: Path | None,
    details: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Run the plan's own dispatch, expert compute and combine, one process per rank; exit 0 only if every
    check holds and, where speed is judged, prediction and promised gain hold too.
    `moeplan traffic` has nccl-tests and UCC send the plan's traffic instead.

    Example: moeplan validate plan.json

    Example: moeplan validate plan.json --emulate

    Example: moeplan validate plan.json --emulate --calibrate calibration.json
    """
    from planner.engines import default_placement
    from planner.launch import hosts_of
    from planner.plan import read_plan
    from planner.report.validation import validation_report
    from probes.dispatch.emulating import emulated_cluster
    from probes.dispatch.outcome_dict import outcome_to_dict
    from probes.dispatch.run import RunFailed
    from probes.dispatch.traffic import choose_traffic
    from probes.dispatch.validation import Contender, Settings, contender_against
    from probes.dispatch.validation import validate as run_plan
    from probes.ranks.early import taking_part
    from probes.ranks.launch import adopt

    if flags["virtual"] and (calibration is not None or emulate is not None):
        alone = "--virtual: ranks in one process send over no links; leave out"
        raise BadInput(f"{alone} {'--emulate' if calibration is None else '--calibrate'}")
    adopt(os.environ)
    try:
        with taking_part():
            saved = read_plan(plan_file)
            problem, placement = saved.problem, saved.placement
            default = default_placement(saved.value.get("engine"), problem)
            plan = Contender(problem, placement)
            contenders = {"plan": plan, "default": Contender(problem, default)}
            for file in against_files:
                if str(file) in contenders:
                    raise BadInput(
                        f"--against {file}: named twice, or like a side of every run; give another file name"
                    )
                other, its_placement, _ = read_plan(file)
                contenders[str(file)] = contender_against(plan, Contender(other, its_placement), str(file))
            flags["hosts"] = hosts_of(problem.topology, flags["hosts"])
            settings = Settings(layers=count_or("all", layers, "--layers"), **flags)
            with emulated_cluster(emulate, problem.topology) as cluster:
                if calibration is not None:
                    _calibrate(contenders, settings, cluster, calibration, as_json=as_json)
                    return
                outcome = run_plan(
                    contenders,
                    settings,
                    cluster,
                    lambda tokens: choose_traffic(saved, plan_file, tokens, trace_files),
                )
    except RunFailed as failure:
        raise No(f"{plan_file}: {failure}") from failure
    if outcome.report.rank == 0:  # the other ranks of a launched group leave the word to it
        say(validation_report(outcome, details=details), outcome_to_dict(outcome), as_json)
    if not outcome.ok:
        raise No(f"{plan_file}: {outcome.failed[0]}")


def _calibrate(contenders: Any, settings: Any, cluster: Any, output: Path, *, as_json: bool) -> None:
    """Runs, fits, writes the file and shows the errors before and after."""
    from datetime import datetime, timezone

    from planner.report.calibration import calibration_report
    from planner.topology import calibration_to_dict, write_calibration
    from probes.calibration.run import calibrate_machine

    today = datetime.now(timezone.utc).date().isoformat()
    outcome = calibrate_machine(contenders, settings, today, cluster)
    if outcome is None:  # the other ranks of a launched group leave the word to the first
        return
    write_calibration(outcome.calibration, output)
    say(calibration_report(outcome), outcome.to_dict(calibration_to_dict(outcome.calibration)), as_json)
    if not as_json:
        tell(f"wrote {output}")
