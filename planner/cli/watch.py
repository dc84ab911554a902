"""The command that follows a running server's load, and plans anew when that pays."""

import time
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import tell
from planner.cli.options import FILE, json_option, option, options

place_options = options(
    option("--folder", type=FILE, metavar="DIR", help="Folder that the server writes its load to."),
    option("--server", "urls", multiple=True, metavar="URL", help="Server to ask; repeatable, one a rank."),
    option(
        "--source", metavar="NAME", help="What tells the load; by the plan's engine where it is not given."
    ),
    option("--remove-read", is_flag=True, help="Remove dump files once what is in them is kept."),
    option("--timeout", type=float, default=30.0, help="Seconds that a server may take for one answer."),
    option(
        "--api-key",
        envvar="MOEPLAN_API_KEY",
        default="",
        show_default=False,
        help="Key of the server; better given in MOEPLAN_API_KEY.",
    ),
)
pay_options = options(
    option(
        "--max-moves", "most_moves", metavar="N|SHARE%", default="10%", help="Slots that one swap may move."
    ),
    option(
        "--horizon",
        metavar="TIME",
        default="3600 s",
        help="How long a new plan is expected to hold; it has to pay within it.",
    ),
    option(
        "--stall",
        "stall_seconds",
        type=float,
        metavar="SECONDS",
        help="What one swap takes, as the engine's log says. [default: predicted]",
    ),
    option(
        "--stops/--overlaps",
        "stops",
        default=True,
        help="Whether the server waits for the weights of a swap.",
    ),
    option(
        "--restart",
        "restart_seconds",
        type=float,
        metavar="SECONDS",
        help="What a restart takes, where the engine cannot swap while it serves.",
    ),
    option(
        "--method",
        default="greedy",
        help="How the plan from nothing is found that a re-plan may borrow from.",
    ),
    option("--seed", type=int, default=0),
)


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@place_options
@pay_options
@option("--once", is_flag=True, help="One round, and the end: for cron.")
@option("--every", type=float, default=60.0, metavar="SECONDS", help="From one round to the next.")
@option("--keep", type=click.IntRange(min=2), default=64, metavar="N", help="Windows that are kept.")
@option(
    "--state", type=FILE, metavar="FILE", help="SQLite file of the rolling window. [default: PLAN.watch.db]"
)
@option(
    "-o", "--output", type=FILE, metavar="NEXT", help="Where a plan that pays goes. [default: PLAN.next.json]"
)
@json_option
def watch(
    plan_file: Path,
    once: bool,
    every: float,
    keep: int,
    state: Path | None,
    output: Path | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Follow a running server's load; when another plan pays, write it with its moves.

    PLAN is the plan that runs.

    Example: moeplan watch plan.json --folder load_windows --once
    """
    from planner.watching import Asked, Running, Watch

    if not every > 0:
        raise BadInput(f"--every {every:g}: give more than 0 seconds")
    running = Running(plan_file, output or plan_file.with_suffix(".next.json"))
    asked = Asked(flags["most_moves"], flags["method"], flags["seed"], terms=_terms(flags))
    source = _source(running, flags)
    watched = Watch(running, state or plan_file.with_suffix(".watch.db"), source, asked, keep=keep)
    try:
        _rounds(watched, once=once, every=every, as_json=as_json)
    finally:
        watched.close()


def _terms(flags: dict[str, Any]) -> Any:
    from planner.base import parse_seconds
    from planner.watching import Terms

    names = ("stall_seconds", "stops", "restart_seconds")
    return Terms(parse_seconds(flags["horizon"]), **{name: flags[name] for name in names})


def _source(running: Any, flags: dict[str, Any]) -> Any:
    from probes.watching.place import Place
    from probes.watching.registry import find_source

    place = Place(flags["urls"], flags["folder"], flags["remove_read"], flags["timeout"], flags["api_key"])
    saved = running.saved
    return find_source(flags["source"], saved.value.get("engine"), place).source(place, saved.problem.model)


def _rounds(watched: Any, *, once: bool, every: float, as_json: bool) -> None:
    import json

    from planner.report.watch import round_lines, round_to_dict

    number = 0
    while True:
        number, began = number + 1, time.monotonic()
        found = watched.round()
        lines = [json.dumps(round_to_dict(found, number))] if as_json else round_lines(found, number)
        tell("\n".join(lines))
        if once:
            if found.faults:
                raise click.exceptions.Exit(1)
            return
        time.sleep(max(every - (time.monotonic() - began), 0.0))
