"""Held-out beside fitted: what the plan and the defaults are predicted to take on both."""

from typing import Any

from planner.base import human_seconds
from planner.bounds import PARTS
from planner.page.charts import Bar, bars, key
from planner.page.document import paragraphs
from planner.page.html import Content, figure, tag
from planner.page.tables import table_of
from planner.page.told import Told

TITLE = "Held-out beside fitted"
NAMES = ("placement", "R", "load", "MoE step", *PARTS, "max/mean", "cross-node", "bottleneck")
SIDES = {"fitted": "fitted", "held_out": "held-out"}


def section(told: Told) -> Content:
    predicted = told.value["predicted"]
    plan = {"name": "this plan", "redundant": told.problem.redundant, **predicted}
    found = [(plan, "predicted")]
    found += [(one, f"predicted.baselines.{at}") for at, one in enumerate(predicted.get("baselines", ()))]
    rows = [_row(one, side, where) for one, where in found for side in SIDES if one.get(side)]
    drawn = [
        Bar(
            f"{one['name']}, {SIDES[side]}",
            one[side]["total_seconds"],
            human_seconds(one[side]["total_seconds"]),
            "plan" if one is plan else "other",
        )
        for one, _ in found
        for side in SIDES
        if one.get(side)
    ]
    load, unseen = told.problem.load, told.value.get("held_out_load")
    windows = told.value["load"].get("windows", 1)
    unit = told.value["load"].get("window_unit", "window")
    said = f"Fitted to {windows:,} {unit}(s) of {load.source}; "
    said += (
        f"{unseen.get('windows', 1):,} held out." if unseen else "none was held out: at least two are needed."
    )
    return [
        paragraphs(said),
        tag(
            "figure",
            tag("div", bars("Predicted seconds of all MoE layers of a step", drawn), class_="scroll"),
            tag("figcaption", key("plan", "this plan"), key("other", "what the engine would do by itself")),
        ),
        table_of(NAMES, rows, "Predicted step, all MoE layers", words=(0, 2, len(NAMES) - 1)),
        _domains(predicted.get("domains", ())),
    ]


def _row(one: dict[str, Any], side: str, where: str) -> list[Content]:
    cost, of = one[side], f"{where}.{side}"
    parts = [(name, cost[f"{name}_seconds"], f"{of}.{name}_seconds") for name in PARTS]
    return [
        one["name"],
        one["redundant"],
        SIDES[side],
        figure(human_seconds(cost["total_seconds"]), cost["total_seconds"], f"{of}.total_seconds"),
        *(figure(human_seconds(value), value, name) for _, value, name in parts),
        figure(f"{cost['max_over_mean']:.4f}", cost["max_over_mean"], f"{of}.max_over_mean"),
        figure(f"{cost['cross_node_share']:.1%}", cost["cross_node_share"], f"{of}.cross_node_share"),
        cost["bottleneck"],
    ]


def _domains(domains: list[dict[str, Any]]) -> Content:
    """Each domain of the load apart: a plan that is good on their sum may be bad on one."""
    rows = []
    for at, domain in enumerate(domains):
        for side, word in SIDES.items():
            found, of = domain[side], f"predicted.domains.{at}.{side}"
            if found is None:
                continue
            seconds, balance = found["objective_seconds"], found["max_over_mean"]
            rows.append(
                [
                    domain["name"],
                    word,
                    found["windows"],
                    "-"
                    if seconds is None
                    else figure(human_seconds(seconds), seconds, f"{of}.objective_seconds"),
                    figure(f"{balance:.4f}", balance, f"{of}.max_over_mean"),
                ]
            )
    names = ("domain", "load", "windows", "objective", "max/mean")
    return table_of(names, rows, "Domains apart", words=(0, 1)) if rows else None
