"""Commands about starting a job: the check before serving, and capacity factors."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.base import BadInput
from planner.cli.console import FILE, Refused, json_option, ranks_option, say

if TYPE_CHECKING:
    from planner.engines import Emission


def launch_options(command: Any) -> Any:
    """How `emit` writes the start of the engine."""
    options = (
        click.option("--launcher", help="shell, slurm, kubernetes or dynamo. [default: shell]"),
        click.option(
            "--hosts",
            metavar="HOST,...",
            help="Hosts in the plan's node order. [default: the topology's own names]",
        ),
        click.option("--image", help="Container image of the engine, for --launcher kubernetes."),
    )
    for option in reversed(options):  # the last one applied is the first one shown
        command = option(command)
    return command


def live_options(command: Any) -> Any:
    """How `check --live` finds the other ranks, and what it compares with."""
    options = (
        click.option(
            "--live",
            is_flag=True,
            help="Run by every rank before serving: does each sit on the host and GPU where the PLAN has it?",
        ),
        click.option(
            "--hosts",
            metavar="HOST,...",
            help="With --live: hosts in the plan's node order. [default: the topology's own names]",
        ),
        click.option(
            "--seats",
            type=FILE,
            help="With --live: what an earlier --live --json printed; hosts and GPU UUIDs must be the same.",
        ),
        click.option(
            "--gather",
            "folder",
            type=FILE,
            help="With --live: folder that all ranks share. [default: the plan's]",
        ),
        click.option(
            "--timeout",
            "timeout_seconds",
            type=float,
            default=60.0,
            show_default=True,
            help="With --live: seconds to wait for all ranks.",
        ),
    )
    for option in reversed(options):  # the last one applied is the first one shown
        command = option(command)
    return command


def with_launcher(
    emission: "Emission",
    plan_file: Path,
    engine: str,
    launcher: str | None,
    hosts: str | None,
    image: str | None,
) -> "Emission":
    """The emission with a launcher's files; without any where none is asked for and the engine starts nothing."""
    from planner.launch import job_for, launched
    from planner.plan import read_plan

    if launcher is None and not emission.commands:
        return emission
    problem, _, _ = read_plan(plan_file)
    return launched(
        emission, job_for(emission, problem, engine, split_hosts(hosts), image), launcher or "shell"
    )


def split_hosts(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def check_live(
    plan_file: Path,
    hosts: str | None,
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
    from probes.ranks.launch import launch_of
    from probes.survey.seat import gather_seats, seat_here

    problem, _, _ = read_plan(plan_file)
    launch = launch_of(os.environ)
    if launch is None:
        raise BadInput(
            f"--live is run by every rank of the job: srun -n {problem.gpus} moeplan check --live {plan_file} (or torchrun, mpirun)"
        )
    expected = planned_seats(problem.topology, hosts_of(problem.topology, split_hosts(hosts)))
    expected = recorded_seats(expected, seats) if seats else expected
    seen = gather_seats(seat_here(launch), launch, folder or plan_file.parent, timeout_seconds)
    if seen is None:
        return
    report = compare(expected, seen)
    say(report.text(), report.to_dict(), as_json)
    if not report.ok:
        raise Refused(f"{plan_file}: {report.mismatches[0]}")


@click.command()
@click.option("--model", "model_name", required=True, help="Catalogue name or a Hugging Face config.json.")
@click.option(
    "--load",
    "load_files",
    multiple=True,
    type=FILE,
    help="Measured load; the one shipped for the model, or an even one, where it is not given.",
)
@click.option("--ep", type=int, required=True, help="Expert-parallel size.")
@click.option(
    "--target", metavar="SHARE", help="Largest share of a layer's assignments that may be dropped, like 0.1%."
)
@click.option(
    "--tokens-per-rank",
    type=int,
    default=4096,
    show_default=True,
    help="Tokens each source rank brings to a step.",
)
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
    """Share of assignments that Megatron-Core, DeepSpeed and Tutel drop at each capacity factor, and the least factor for a target.

    Example: moeplan capacity --model mixtral --ep 8 --target 0.1%
    """
    from planner.load import capacity_report, parse_share
    from planner.model import find_model
    from planner.planning import find_load

    model = find_model(model_name)
    report = capacity_report(
        model,
        find_load(load_files, model, ranks=ranks),
        ep,
        tokens_per_rank,
        parse_share(target) if target else None,
    )
    say(report.text(), report.to_dict(), as_json)
