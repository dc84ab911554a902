"""Expert popularity: how uneven the load is that the plan is judged on."""

import numpy as np

from planner.page.charts import columns
from planner.page.document import paragraphs
from planner.page.html import Content, Html, tag
from planner.page.tables import folded_table
from planner.page.told import Told

TITLE = "Expert popularity"
DRAWN = 6  # layers


def section(told: Told) -> Content:
    load = told.judged_load
    counts_LE = load.total_LE
    mean_L = np.maximum(counts_LE.mean(axis=1), 1e-300)
    over_LE = counts_LE / mean_L[:, None]
    order = sorted(range(len(over_LE)), key=lambda row: (-over_LE[row].max().round(12), row))
    drawn = [_picture(told, row, over_LE[row]) for row in order[:DRAWN]]
    side = told.side.replace("_", "-")
    unmeasured = ", ".join(map(str, load.unmeasured_layer_ids))
    return [
        paragraphs(
            f"Assignments of each expert over the mean of its layer, on the {side} load ({load.source}). "
            "The dashed line is 1, the same for all.",
            f"Not measured, filled from other layers or assumed: layers {unmeasured}."
            if unmeasured
            else None,
        ),
        tag("div", drawn, class_="small"),
        _table(told, order, over_LE),
    ]


def _picture(told: Told, row: int, over_E: np.ndarray) -> Html:
    found = np.sort(over_E)[::-1]
    title = f"Layer {told.layer_ids[row]}: experts, most popular first, from {found[0]:.2f} x the mean"
    caption = f"layer {told.layer_ids[row]}: {found[0]:.2f} x to {found[-1]:.2f} x the mean"
    return tag("figure", columns(title, found.tolist(), 1.0), tag("figcaption", caption))


def _table(told: Told, order: list[int], over_LE: np.ndarray) -> Html:
    experts = over_LE.shape[1]
    tenth = max(experts // 10, 1)
    replicas_LE = told.placement.replicas_LE(experts)
    rows = []
    for row in order:
        ranked = np.lexsort((np.arange(experts), -over_LE[row]))
        total = over_LE[row].sum() or 1.0
        top = ", ".join(
            f"{expert} ({over_LE[row, expert]:.2f} x, {replicas_LE[row, expert]} slots)"
            for expert in ranked[:5]
        )
        rows.append(
            [
                str(told.layer_ids[row]),
                f"{over_LE[row].max():.2f}",
                f"{over_LE[row, ranked[:tenth]].sum() / total:.1%}",
                int((over_LE[row] == 0).sum()),
                top,
            ]
        )
    names = ("layer", "largest over mean", f"share of the top {tenth}", "never chosen", "most popular")
    return folded_table(names, rows, "Popularity by layer, most uneven first", words=(0, 4))
