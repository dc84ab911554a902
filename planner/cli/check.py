"""The command that judges a file before it is served, and with --live the ranks that would serve it."""

from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import No, Refused, say
from planner.cli.options import FILE, hosts_option, json_option, option, options

live_options = options(
    option(
        "--live",
        is_flag=True,
        help="Run by every rank before serving: does each sit on the host and GPU where the PLAN has it?",
    ),
    hosts_option("With --live: hosts in the plan's node order. [default: the topology's own names]"),
    option(
        "--seats",
        type=FILE,
        help="With --live: what an earlier --live --json printed; hosts and GPU UUIDs must be the same.",
    ),
    option(
        "--gather",
        "folder",
        type=FILE,
        help="With --live: folder that all ranks share. [default: the plan's]",
    ),
    option(
        "--timeout",
        "timeout_seconds",
        type=float,
        default=60.0,
        help="With --live: seconds to wait for all ranks.",
    ),
)


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@option("--model", "model_name", help="Model the map is for; without it the number of experts is inferred.")
@option(
    "--ep", type=int, help="EP size; without it 'no expert twice on a GPU' cannot be judged for a bare map."
)
@option("--engine", help="Also judge whether this engine would load it for this model, and its launch.")
@option(
    "--role",
    type=click.Choice(["mixed", "prefill", "decode"]),
    default="mixed",
    show_default=True,
    help="With --engine: as `emit --role` has it.",
)
@live_options
@json_option
def check(
    file: Path,
    model_name: str | None,
    ep: int | None,
    engine: str | None,
    role: str,
    live: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Judge a plan, an engine's map file, or a folder that `emit` wrote, by every hard rule.

    A map is also held against the plan and the digests beside it. Exit 0 for a good one, 2 for a bad one, 1
    for a good one that is another than the plan, the digests, --model or --ep say.

    Example: moeplan check out

    Example: moeplan check out/expert_location.json --model deepseek-v3 --ep 32

    Example: srun -n 16 moeplan check --live plan.json
    """
    from planner.maps import check_file

    if live:
        _check_live(file, as_json=as_json, **flags)
        return
    report = check_file(file, model_name, ep, engine, role)
    say(report.text(), report.to_dict(), as_json)
    if not report.ok:
        raise (No if report.mistaken else Refused)(f"{file}: {report.problems[0]}")


def _check_live(
    plan_file: Path,
    hosts: tuple[str, ...],
    seats: Path | None,
    folder: Path | None,
    timeout_seconds: float,
    *,
    as_json: bool,
) -> None:
    """One rank's part in the check of all; rank 0 speaks."""
    import os

    from planner.launch import hosts_of
    from planner.plan import read_plan
    from planner.topology import compare, planned_seats, recorded_seats
    from probes.nvml.seat import seat_here
    from probes.ranks.launch import launch_of
    from probes.survey.seat import gather_seats

    problem, _, _ = read_plan(plan_file)
    launch = launch_of(os.environ)
    if launch is None:
        start = f"srun -n {problem.gpus} moeplan check --live {plan_file}"
        raise BadInput(f"--live is run by every rank of the job: {start} (or torchrun, mpirun)")
    expected = planned_seats(problem.topology, hosts_of(problem.topology, hosts))
    expected = recorded_seats(expected, seats) if seats else expected
    seen = gather_seats(seat_here(launch), launch, folder or plan_file.parent, timeout_seconds)
    if seen is None:
        return
    report = compare(expected, seen)
    say(report.text(), report.to_dict(), as_json)
    if not report.ok:
        raise Refused(f"{plan_file}: {report.mismatches[0]}")
