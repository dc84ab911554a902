"""What a re-plan moves, what that takes, and when it has paid: a few lines and a table of waves."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.plan import Moves, Plan, steps_to_pay
from planner.report.tables import table_of

SHOWN_WAVES = 5


def moves_report(plan: Plan) -> tuple[RenderableType, ...]:
    """Nothing for a plan that does not come from another."""
    if plan.moves is None:
        return ()
    head = f"{_headline(plan.moves)}; {_payback(plan)}"
    if not plan.moves.moved:
        return (Text(head),)
    apart = human_bytes(plan.moves.most_received_bytes)
    rests = (
        f"Each transfer reads the placement as it was: the busiest receiver holds {apart} apart "
        "if all layers change at once. Seconds are the links' full rates, with nothing else on them."
    )
    return Text(f"{head}\n{rests}"), waves_table(plan.moves)


def waves_table(moves: Moves) -> Table:
    """The first waves, and the rest in one row. In a wave no GPU sends twice and none receives twice."""
    waves = moves.transfers.waves
    shown = waves if waves <= SHOWN_WAVES + 1 else SHOWN_WAVES
    rows = [_wave_cells(moves, wave, wave + 1) for wave in range(shown)]
    if shown < waves:
        rows.append(_wave_cells(moves, shown, waves))
    return table_of(("wave", "transfers", "bytes", "seconds"), rows, title=f"Moves in {waves} waves")


def _wave_cells(moves: Moves, first: int, end: int) -> tuple[str, ...]:
    wave_T = moves.transfers.wave_T
    return (
        str(first) if end == first + 1 else f"{first}-{end - 1}",
        str(int(((wave_T >= first) & (wave_T < end)).sum())),
        human_bytes(float(moves.bytes_W[first:end].sum())),
        human_seconds(float(moves.seconds_W[first:end].sum())),
    )


def _headline(moves: Moves) -> str:
    allowed = "any number" if moves.most is None else f"{moves.most:,}"
    where = f"From {moves.previous}" + (f", {moves.resize.text()}" if moves.resize else "")
    if not moves.moved:
        return f"{where}: nothing moves (allowed: {allowed})"
    reads = len(moves.transfers.reads)
    read = f"; {reads:,} of them read from disk, {human_bytes(moves.read_bytes)}" if reads else ""
    needed = f"needed: {moves.needed:,}, " if moves.resize else ""
    return (
        f"{where}: {moves.moved:,} of {moves.slots:,} slots move "
        f"({moves.share:.1%}; {needed}allowed: {allowed}), {human_bytes(moves.total_bytes)} "
        f"in {moves.transfers.waves} waves, {human_seconds(moves.seconds)}{read}"
    )


def _payback(plan: Plan) -> str:
    assert plan.moves is not None
    saved, where = plan.saved_seconds, "held-out" if plan.held_out else "fitted"
    if plan.moves.resize is not None:
        return "GPUs and slots of the transfers are counted as before, new GPUs behind"
    if not plan.moves.moved:
        return "no move that is allowed was found to save time"
    steps = steps_to_pay(plan.moves, saved)
    if saved is None or steps is None:
        return f"on {where} load they save nothing: keep the previous plan"
    return f"they save {human_seconds(saved)} a step on {where} load, and have paid after {steps:,} steps"
