"""After a loss of GPUs: what those left serve. Nothing where the plan was not asked to survive one."""

from typing import Any

from planner.base import human_seconds
from planner.page.document import paragraphs
from planner.page.html import Content
from planner.page.tables import table_of
from planner.page.told import Told

TITLE = "After a loss"
SERVED = ("whole_seconds", "tokens_per_s")


def section(told: Told) -> Content | None:
    found = told.value["predicted"].get("after_loss")
    if not _whole(found):
        return None
    before = found["before"]
    rows = [["nothing", "", human_seconds(before["whole_seconds"]), "100.0%", "", ""]]
    for name, key in (("worst balance", "worst_balance"), ("slowest", "slowest")):
        loss = found[key]
        gpus = ", ".join(str(gpu) for gpu in loss["gpus"][:12]) + (", ..." if len(loss["gpus"]) > 12 else "")
        cells = []
        for side in ("same_batch", "all_tokens"):
            served = loss[side]
            cells += [
                human_seconds(served["whole_seconds"]),
                f"{served['tokens_per_s'] / before['tokens_per_s']:.1%}",
            ]
        rows.append([name, gpus, *cells])
    names = ("loss", "GPUs lost", "own batch", "tokens/s", "all tokens", "tokens/s ")
    return [
        paragraphs(
            f"After the loss of {found['survive']}: {found['losses']:,} of {found['possible']:,} losses were "
            f"looked at, the steps of {found['timed']} predicted. Own batch: each GPU left brings as "
            "many tokens as before; all tokens: those of all. Nothing is re-planned."
        ),
        table_of(names, rows, "Whole steps after a loss", words=(0, 1)),
    ]


def _whole(found: Any) -> bool:
    """Whether the file says all that is shown: it holds these figures unchecked."""
    if not isinstance(found, dict) or not {"survive", "losses", "possible", "timed"} <= set(found):
        return False
    losses = [one for name in ("worst_balance", "slowest") if isinstance(one := found.get(name), dict)]
    if len(losses) < 2 or not all(isinstance(one.get("gpus"), list) for one in losses):
        return False
    served = [
        found.get("before"),
        *(one.get(side) for one in losses for side in ("same_batch", "all_tokens")),
    ]
    counts = [found[name] for name in ("losses", "possible", "timed")]
    figures = [one.get(name) if isinstance(one, dict) else None for one in served for name in SERVED]
    return all(type(one) in (int, float) and one > 0 for one in (*counts, *figures))
