"""What is left after a loss, as a table for a terminal."""

from rich.table import Table

from planner.base import human_seconds
from planner.cost import AfterLoss, Loss
from planner.report.tables import table_of

SHOWN_GPUS = 8  # of a lost node


def loss_table(found: AfterLoss) -> Table:
    """Before, worst and mean. The survivors of an expert share evenly, under every engine's rule."""
    where = "held-out" if found.held_out else "fitted"
    before = found.whole.tokens_per_s
    one_by_one = {"none": found.whole, "worst balance": found.worst_balance, "slowest": found.slowest}
    rows = [
        (name, _gpus(loss), *_cells(loss.max_over_mean, loss.total_seconds, loss.tokens_per_s / before))
        for name, loss in one_by_one.items()
    ]
    mean = _cells(found.mean_max_over_mean, found.mean_seconds, found.mean_tokens_per_s / before)
    rows.append(("mean", "", *mean))
    names = ("loss", "GPUs lost", "max/mean", "step", "tokens/s against before")
    title = f"After the loss of {found.survive} ({where} load)"
    return table_of(names, rows, words=("loss", "GPUs lost"), title=title)


def loss_note(found: AfterLoss) -> str:
    """What the table rests on."""
    rests = (
        "Every expert keeps a slot; survivors share its load evenly, "
        "ranks left bring as many tokens as before, nothing is re-planned."
    )
    return f"{rests} {coverage(found)}."


def coverage(found: AfterLoss) -> str:
    """How many of the possible losses were looked at; a sample is never called all."""
    if found.exact:
        return f"Balance of all {found.losses:,} losses, steps of {found.timed}"
    losses = f"{found.losses:,} of {found.possible:,} losses (drawn, and the worst by steps)"
    return f"Balance of {losses}, steps of {found.timed}"


def _cells(max_over_mean: float, seconds: float, tokens: float) -> tuple[str, str, str]:
    return f"{max_over_mean:.4f}", human_seconds(seconds), f"{tokens:.1%}"


def _gpus(loss: Loss) -> str:
    shown = ", ".join(map(str, loss.gpus[:SHOWN_GPUS]))
    return shown + (f", ... ({len(loss.gpus)})" if len(loss.gpus) > SHOWN_GPUS else "")
