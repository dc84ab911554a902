"""Gap to the bound: what no placement can be predicted below, by part of the step and by layer."""

from planner.base import human_seconds
from planner.bounds import PARTS
from planner.page.document import paragraphs
from planner.page.html import Content, figure
from planner.page.tables import folded_table, table_of
from planner.page.told import Told
from planner.report.headline import layer_ranges

TITLE = "Gap to the bound"
CLAIMS = {
    "proven_balance": "balance",
    "proven_time": "time on the fitted load",
    "proven_objective": "the objective over windows",
}


def section(told: Told) -> Content:
    bound = told.value["bound"]
    gap = figure(f"{bound['gap']:.2%}", bound["gap"], "bound.gap")
    lines: list[Content] = [
        [
            "Busiest GPUs carry ",
            gap,
            " more than any placement's must, on the fitted load (summed over layers).",
        ]
    ]
    if "total_seconds" in bound:
        least = figure(human_seconds(bound["total_seconds"]), bound["total_seconds"], "bound.total_seconds")
        lines.append(
            ["No placement is predicted to take less than ", least, " for the MoE layers of a step."]
        )
    if "gap_seconds_share" in bound:
        share = bound["gap_seconds_share"]
        said = figure(f"{max(share, 0):.1%}", share, "bound.gap_seconds_share")
        lines.append(
            ["The fitted step is ", said, " above that: the gap may lie in the plan or in the bound."]
        )
    proven = [f"{words}: {_layers(told, bound[name])}" for name, words in CLAIMS.items() if name in bound]
    if proven:
        lines.append(f"Proven optimal for {'; for '.join(proven)}.")
    return [paragraphs(*lines), _parts(told), _by_layer(told)]


def _layers(told: Told, proven: list[bool]) -> str:
    return layer_ranges([layer for layer, holds in zip(told.layer_ids, proven, strict=True) if holds])


def _parts(told: Told) -> Content:
    """How much of the distance lies in each part; the argument that bounds most layers."""
    rows = []
    for part in PARTS:
        found = told.value["bound"].get("parts", {}).get(part)
        if not isinstance(found, dict) or not isinstance(found.get("gap_seconds"), (int, float)):
            continue
        reasons = [str(reason) for reason in found.get("reason", ())]
        most = max(sorted(set(reasons)), key=reasons.count) if reasons else "-"
        gap = found["gap_seconds"]
        rows.append([part, figure(human_seconds(max(gap, 0)), gap, f"bound.parts.{part}.gap_seconds"), most])
    names = ("part", "above its bound", "in most layers bound by")
    return table_of(names, rows, "Distance by part", words=(0, 2)) if rows else None


def _by_layer(told: Told) -> Content:
    """The layers with the busiest GPUs first."""
    bound, predicted = told.value["bound"], told.value["predicted"]
    rows = []
    for row in told.worst_first:
        fitted = predicted["fitted"]["layers"][row]["max_over_mean"]
        unseen = predicted["held_out"]["layers"][row]["max_over_mean"] if told.held_out else None
        least = bound["max_over_mean"][row]
        of = f"layers.{row}.max_over_mean"
        rows.append(
            [
                str(told.layer_ids[row]),
                figure(f"{fitted:.4f}", fitted, f"predicted.fitted.{of}"),
                "-" if unseen is None else figure(f"{unseen:.4f}", unseen, f"predicted.held_out.{of}"),
                figure(f"{least:.4f}", least, f"bound.max_over_mean.{row}"),
                f"{max(fitted / least - 1, 0):.2%}" if least else "-",
                bound["reason"][row],
            ]
        )
    names = ("layer", "max/mean fitted", "held-out", "bound", "gap", "bound from")
    return folded_table(names, rows, "Busiest GPU over the mean, worst layers first", words=(0, 5))
