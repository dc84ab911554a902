"""What a re-plan moves, what that takes, and when it has paid: a few lines and a table of waves for a terminal."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.plan import Moves, Plan, steps_to_pay

SHOWN_WAVES = 5


def moves_report(plan: Plan) -> tuple[RenderableType, ...]:
    """Nothing for a plan that does not come from another."""
    if plan.moves is None:
        return ()
    lines = [f"{_headline(plan.moves)}; {_payback(plan)}"]
    if not len(plan.moves.transfers):
        return (Text(lines[0]),)
    lines.append(
        f"Each transfer reads the placement as it was: the busiest receiver holds {human_bytes(plan.moves.most_received_bytes)} apart "
        "if all layers change at once. Seconds are the links' full rates, with nothing else on them."
    )
    return Text("\n".join(lines)), waves_table(plan.moves)


def waves_table(moves: Moves) -> Table:
    """The first waves, and the rest in one row. In a wave no GPU sends twice and none receives twice."""
    table = Table(title=f"Moves in {moves.transfers.waves} waves", title_justify="left")
    for name in ("wave", "transfers", "bytes", "seconds"):
        table.add_column(name, justify="right")
    shown = moves.transfers.waves if moves.transfers.waves <= SHOWN_WAVES + 1 else SHOWN_WAVES
    for wave in range(shown):
        table.add_row(
            str(wave),
            str(int((moves.transfers.wave_T == wave).sum())),
            human_bytes(float(moves.bytes_W[wave])),
            human_seconds(float(moves.seconds_W[wave])),
        )
    if shown < moves.transfers.waves:
        rest = (moves.transfers.wave_T >= shown).sum()
        table.add_row(
            f"{shown}-{moves.transfers.waves - 1}",
            str(int(rest)),
            human_bytes(float(moves.bytes_W[shown:].sum())),
            human_seconds(float(moves.seconds_W[shown:].sum())),
        )
    return table


def _headline(moves: Moves) -> str:
    allowed = "any number" if moves.most is None else f"{moves.most:,}"
    if not len(moves.transfers):
        return f"From {moves.previous}: nothing moves (allowed: {allowed})"
    return (
        f"From {moves.previous}: {len(moves.transfers):,} of {moves.slots:,} slots move ({moves.share:.1%}; allowed: {allowed}), "
        f"{human_bytes(moves.total_bytes)} in {moves.transfers.waves} waves, {human_seconds(moves.seconds)}"
    )


def _payback(plan: Plan) -> str:
    assert plan.moves is not None
    saved, where = plan.saved_seconds, "held-out" if plan.held_out else "fitted"
    if not len(plan.moves.transfers):
        return "no move that is allowed was found to save time"
    steps = steps_to_pay(plan.moves, saved)
    if saved is None or steps is None:
        return f"on {where} load they save nothing: keep the previous plan"
    return f"they save {human_seconds(saved)} a step on {where} load, and have paid after {steps:,} steps"
