"""What is left after a loss, as a table for a terminal, and the sentences that say what it rests on."""

from rich.table import Table

from planner.base import human_seconds
from planner.cost import AfterLoss, Loss, Served
from planner.load import spans
from planner.problem import LeastRedundant, Survival
from planner.report.tables import table_of

SHOWN_GPUS = 24  # characters of the lost ones
NAMES = ("loss", "GPUs lost", "own batch", "tokens/s", "all tokens", "tokens/s ")


def loss_table(found: AfterLoss) -> Table:
    """Before, worst and mean: steps and tokens/s of the GPUs left, with their own batch and all tokens."""
    where = "held-out" if found.held_out else "fitted"
    before = found.before
    rows: list[tuple[str, ...]] = [("none", "", human_seconds(before.whole_seconds), "100.0%", "", "")]
    one_by_one = {"worst balance": found.worst_balance, "slowest": found.slowest}
    rows += [(name, gpus_text(loss.gpus), *cells(loss, before)) for name, loss in one_by_one.items()]
    own = f"{found.mean_same_batch_tokens_per_s / before.tokens_per_s:.1%}"
    rows.append(("mean", "", "", own, "", f"{found.mean_all_tokens_per_s / before.tokens_per_s:.1%}"))
    title = f"After the loss of {found.survive} ({where} load)"
    return table_of(NAMES, rows, words=("loss", "GPUs lost"), title=title)


def loss_note(found: AfterLoss) -> str:
    """What the table rests on, the fewest replicas that survive, and why a loss may cost nothing."""
    lines = [
        f"{rests_on(found.replica_rule, found.transport, found.error)} {coverage(found)}.",
        least_text(found.survive, found.least_redundant),
        *gain_texts(found),
    ]
    return "\n".join(lines)


def rests_on(replica_rule: str, transport: str, error: str) -> str:
    return (
        f"Seconds are of the engine's whole step: {error}. "
        f"Before is the plan as served, and after is under the same rule ({replica_rule}) and transport "
        f"({transport}). Own batch: each GPU left brings as many tokens as before, the lost ones' requests "
        "are gone; all tokens: the GPUs left bring those of all. Nothing is re-planned."
    )


def coverage(found: AfterLoss) -> str:
    """How many of the possible losses were looked at; a sample is never called all."""
    if found.exact:
        return f"Balance of all {found.losses:,} losses, steps of {found.timed}"
    losses = f"{found.losses:,} of {found.possible:,} losses (drawn, and the worst by steps)"
    return f"Balance of {losses}, steps of {found.timed}"


def least_text(survive: Survival, least: LeastRedundant) -> str:
    """
    >>> least_text(Survival(gpus=1), LeastRedundant(kept=16, replaced=None))[:74]
    'Least R for any 1 GPU: 16 where the engine leaves experts where they are, '
    """
    kept, replaced = or_none(least.kept), or_none(least.replaced)
    return (
        f"Least R for {survive}: {kept} where the engine leaves experts where they are, {replaced} where it "
        "places them anew on the GPUs left (those without a copy read from disk)."
    )


def gain_texts(found: AfterLoss) -> list[str]:
    """Why a loss is predicted to yield no less than the machine did, each reason once."""
    gains = {loss.gain: loss for loss in (found.slowest, found.worst_balance) if loss.gain}
    return [f"The loss of GPUs {gpus_text(loss.gpus)} costs nothing: {why}." for why, loss in gains.items()]


def cells(loss: Loss, before: Served) -> tuple[str, ...]:
    """Step and tokens/s with the own batch, then with all tokens."""
    pairs = (
        (human_seconds(one.whole_seconds), f"{one.tokens_per_s / before.tokens_per_s:.1%}")
        for one in (loss.same_batch, loss.all_tokens)
    )
    return tuple(text for pair in pairs for text in pair)


def gpus_text(gpus: tuple[int, ...]) -> str:
    """
    >>> gpus_text((0, 1, 2, 5)), gpus_text(tuple(range(0, 40, 2)))
    ('0-2, 5', '0, 2, 4, 6, 8, 10, ... (20)')
    """
    text = spans(list(gpus))
    if len(text) <= SHOWN_GPUS:
        return text
    return f"{text[: text.rindex(', ', 0, SHOWN_GPUS - 2)]}, ... ({len(gpus)})"


def or_none(redundant: int | None) -> str:
    """
    >>> or_none(8), or_none(None)
    ('8', 'none')
    """
    return "none" if redundant is None else str(redundant)
