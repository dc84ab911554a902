"""Whether balancing pays, as text and as plain values: the answer, the table, and what they rest on."""

from math import isinf
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.planning import Pays, PaysRow
from planner.report.pays_answer import (
    answer_line,
    drift_line,
    moving_seconds,
    perfect_line,
    replica_lines,
    steps_text,
)
from planner.report.tables import table_of


def pays_report(found: Pays) -> RenderableType:
    head = [answer_line(found), *replica_lines(found), drift_line(found), perfect_line(found)]
    rests = [*_setting(found), *(f"Note: {note}" for note in found.notes)]
    return Group(Text("\n".join(head)), pays_table(found), Text("\n".join(rests), style="dim"))


def pays_table(found: Pays) -> Table:
    rows = [
        (
            row.name,
            str(row.redundant),
            f"{row.max_over_mean:.3f}",
            human_seconds(row.step_seconds),
            human_seconds(row.pause_seconds) if row.pause_seconds else "-",
            f"{row.tokens_per_s:,.0f}" if row.tokens_per_rank else "no room",
            f"{found.gain(row):+.1%}" if row.tokens_per_rank else "-",
            f"{row.requests:,}",
        )
        for row in found.rows.values()
    ]
    names = ("", "R", "max/mean", "step", "moves", "tokens/s", "gain", "requests")
    return table_of(names, rows, words=("",))


def pays_to_dict(found: Pays) -> dict[str, Any]:
    """The same figures for machines; SI units."""
    winner = found.winner
    drift = found.drift
    return {
        "answer": answer_line(found),
        "pays": winner.name if winner else None,
        "held_out": found.series.unseen,
        "rows": {row.name: {**_plain(row), "gain": found.gain(row)} for row in found.rows.values()},
        "drift": {
            "window_steps": drift.window_steps,
            "max_over_mean_by_lag": list(drift.max_over_mean_K),
            "seconds_by_lag": list(drift.seconds_K),
            "replanning_pays_after_steps": _finite(drift.pays_after(moving_seconds(found))),
        },
        "online": {
            "settings_of": found.balancer_of,
            "interval_steps": found.balancer.interval_steps,
            "look_back_steps": found.balancer.window_steps,
            "stops": found.balancer.stalls,
            "source": found.balancer.source,
        },
        "notes": list(found.notes),
    }


def _setting(found: Pays) -> list[str]:
    """What the figures are of, and how the engine rebalances."""
    moved, balancer, problem, series = found.online.rearrangement, found.balancer, found.problem, found.series
    assert moved is not None
    workload = problem.workload
    step = f"{workload.phase}, {workload.tokens_per_rank} tokens a rank, rule {problem.replica_rule}"
    windows = f"{len(series.fitted)} window(s) fitted, {len(series.judged)} judged"
    every = f"every {balancer.interval_steps:,} steps by the last {balancer.window_steps:,}"
    how = "stops" if balancer.stalls else "serves on"
    moves = f"{moved.moved_share:.0%} of the slots, {human_bytes(moved.total_bytes)}"
    between = f"{moved.cross_node_share:.0%} of it between nodes"
    stopped, linked = human_seconds(moved.stall_seconds), human_seconds(moved.link_seconds)
    return [
        f"{problem.model.name} on {problem.topology.name}: {step}",
        f"{windows}, of {steps_text(float(series.steps_J.mean()))}",
        f"a step is a whole one, attention and the engine included: {found.error}",
        f"online: {found.balancer_of} rearranges {every}, and {how} meanwhile ({balancer.source})",
        f"a rearrangement moves {moves}, {between}: {stopped} if it stops, {linked} of the links if not",
    ]


def _plain(row: PaysRow) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(row)


def _finite(value: float | None) -> float | None:
    return None if value is None or isinf(value) else value
