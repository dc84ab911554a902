"""What must be said beside the figures: of the windows, and of the batch."""

from planner.engines import OnlineBalancer
from planner.planning.paying.series import Series
from planner.planning.paying.verdict import Row
from planner.problem import Problem


def series_notes(series: Series, balancer: OnlineBalancer) -> tuple[str, ...]:
    """What windows cannot show: drift, rearrangements, an order in time."""
    notes: list[str] = []
    if not series.unseen:
        notes.append(
            "one window of load: how it drifts cannot be known, and every figure is on the load that "
            "the plans were fitted to; record several windows"
        )
    elif series.judged_steps < balancer.interval_steps:
        notes.append(
            f"the judged windows are {series.judged_steps:,.1f} steps, fewer than the "
            f"{balancer.interval_steps:,} between two rearrangements: "
            "what the load does in between is not in them"
        )
    if series.fitted[0].domains:
        notes.append("windows of several domains are no series in time: drift is from one domain to another")
    return tuple(notes)


def batch_notes(rows: dict[str, Row], problem: Problem) -> tuple[str, ...]:
    """Where memory cuts the batch that was asked for."""
    asked = problem.workload.tokens_per_rank
    room: dict[int, list[str]] = {}
    for name, row in rows.items():
        if row.tokens_per_rank < asked:
            room.setdefault(row.tokens_per_rank, []).append(name)
    if not room:
        return ()
    length = f"requests of {problem.workload.context_tokens:,} tokens"
    given = "" if problem.workload.context_given else " (assumed: give --context)"
    cut = "; ".join(f"{tokens} in {', '.join(names)}" for tokens, names in sorted(room.items(), reverse=True))
    return (f"memory has room for fewer than {asked} {length} a rank{given}: {cut}",)
