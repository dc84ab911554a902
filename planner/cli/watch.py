"""The command that follows a running server's load, and plans anew when that pays."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import Interrupted, tell
from planner.cli.options import FILE, json_option, option, options

place_options = options(
    option("--folder", type=FILE, metavar="DIR|FILE", help="Where the server writes its load."),
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
        "--least-gain",
        metavar="SHARE%",
        default="1%",
        help="Of a whole step: a plan that saves less is not worth a swap, however cheap.",
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
@option(
    "--apply", is_flag=True, help="Hand a plan that pays to the engine, where it can swap while it serves."
)
@option("--map", "map_file", type=FILE, help="With --apply: the map that vLLM's plugin reads.")
@option("--every", type=float, default=60.0, metavar="SECONDS", help="From one round to the next.")
@option("--keep", type=click.IntRange(min=2), default=64, metavar="N", help="Windows that are kept.")
@option(
    "--state", type=FILE, metavar="FILE", help="SQLite file of the rolling window. [default: PLAN.watch.db]"
)
@option("--metrics", metavar="PORT|FILE", help="Prometheus metrics of watch itself: [HOST:]PORT or a file.")
@option(
    "-o", "--output", type=FILE, metavar="NEXT", help="Where a plan that pays goes. [default: PLAN.next.json]"
)
@json_option
def watch(
    plan_file: Path,
    once: bool,
    apply: bool,
    map_file: Path | None,
    every: float,
    keep: int,
    state: Path | None,
    metrics: str | None,
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
    source, swapper = _engine(running, flags, map_file, apply=apply)
    state = state or plan_file.with_suffix(".watch.db")
    watched = Watch(running, state, source, asked, swapper, keep)
    try:
        with _told(metrics) as publish:
            _rounds(watched, publish, once=once, every=every, as_json=as_json)
    except KeyboardInterrupt as stop:
        kept = f"{state} has what was heard"
        raise Interrupted(f"ended; {kept}, and a swap that was begun is gone on with at the start") from stop
    finally:
        watched.close()


def _told(metrics: str | None) -> AbstractContextManager[Callable[[str], None]]:
    """What takes the metrics of each round."""
    from probes.watching.exporter import exporter

    return nullcontext(lambda _: None) if metrics is None else exporter(metrics)


def _terms(flags: dict[str, Any]) -> Any:
    from planner.base import parse_seconds
    from planner.watching import Terms

    names = ("stall_seconds", "stops", "restart_seconds")
    given = {name: flags[name] for name in names}
    least = _least(flags["least_gain"])
    return Terms(parse_seconds(flags["horizon"]), **given, least_gain=least)


def _least(text: str) -> float:
    """
    >>> _least("1%"), _least("0.002")
    (0.01, 0.002)
    """
    from planner.load import parse_share

    share = parse_share(text)
    if not 0 <= share < 1:
        raise BadInput(f"--least-gain {text!r}: give a share of a step, like 1%")
    return share


def _engine(running: Any, flags: dict[str, Any], map_file: Path | None, *, apply: bool) -> tuple[Any, Any]:
    """(what tells the load, how the engine is handed a plan or None)."""
    from probes.watching.place import Place
    from probes.watching.registry import find_source, find_swapper

    place = Place(flags["urls"], flags["folder"], flags["remove_read"], flags["timeout"], flags["api_key"])
    saved = running.saved
    engine = saved.value.get("engine")
    source = find_source(flags["source"], engine, place).source(place, saved.problem.model)
    if not apply and map_file is not None:
        raise BadInput(f"--map {map_file}: the map is changed with --apply alone")
    return source, find_swapper(engine, place, map_file) if apply else None


def _rounds(watched: Any, publish: Callable[[str], None], *, once: bool, every: float, as_json: bool) -> None:
    import json

    from planner.report.watch import round_lines, round_to_dict
    from planner.watching import Metrics

    metrics, number = Metrics(), 0
    while True:
        number, began = number + 1, time.monotonic()
        found = watched.round()
        metrics.add(found)
        lines = [json.dumps(round_to_dict(found, number))] if as_json else round_lines(found, number)
        tell("\n".join(lines))
        try:
            publish(metrics.text())
        except BadInput as fault:
            tell(f"note: {fault}", err=True)
        if once:
            if found.faults:
                raise click.exceptions.Exit(1)
            return
        time.sleep(max(every - (time.monotonic() - began), 0.0))
