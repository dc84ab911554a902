"""The machine drawn with the load of its links, and each link with its rate, evidence and traffic."""

import numpy as np

from planner.base import human_bandwidth, human_bytes, human_seconds
from planner.page.charts import key
from planner.page.document import paragraphs
from planner.page.evidence_kind import kind_tag
from planner.page.html import Content, figure, tag
from planner.page.machine_drawing import Busy, draw_machine, gpus_across
from planner.page.tables import folded_table, table_of
from planner.page.told import Told
from planner.report.topology import tiers_table

TITLE = "Machine and links"


def section(told: Told) -> Content:
    topology = told.problem.topology
    name = f"{topology.name}: {topology.node_count} node(s), {topology.gpu_count} GPU(s)"
    if not topology.resources:
        return paragraphs(f"{name}. One GPU: nothing is sent.")
    plan = told.traffic["plan"]
    busiest = float(plan.seconds_R.max())
    over_G = told.judged.busy_LG.sum(axis=0) / told.judged.fair_L.sum()
    said = _said(told)
    drawn = draw_machine(topology, Busy(over_G, plan.seconds_R / (busiest or 1.0), said))
    return [
        paragraphs(
            f"{name}. A link shows how long the dispatches of a step keep it busy, over all layers and "
            f"without start-up, beside the busiest link ({human_seconds(busiest)}).",
            f"Traffic is that of {_whose(told)}.",
        ),
        tag(
            "figure",
            tag(
                "div",
                tag("div", drawn, class_="scroll wide"),
                tag("p", class_="says", aria_live="polite"),
                class_="map",
                data_across=gpus_across(topology),
            ),
            tag("figcaption", _legend()),
        ),
        _tiers(told),
        _links(told),
    ]


def _whose(told: Told) -> str:
    if told.rows is not None and told.rows.trace is not None:
        return f"the {told.rows.trace.experts_LTK.shape[1]:,} tokens kept beside the plan"
    return f"the counts of the {told.side.replace('_', '-')} load, tokens choosing experts independently"


def _said(told: Told) -> list[str]:
    plan, default = told.traffic["plan"], told.traffic["engine default"]
    return [
        f"{one.name}: {human_bytes(plan.bytes_R[at])} a step in {human_seconds(plan.seconds_R[at])}, "
        f"engine default {human_bytes(default.bytes_R[at])}; "
        f"{human_bandwidth(one.rate.bytes_per_s)} ({one.rate.evidence.kind})"
        for at, one in enumerate(told.problem.topology.resources)
    ]


def _legend() -> Content:
    links = ((0, "idle"), (2, "a quarter"), (4, "half"), (7, "the busiest"))
    gpus = ((0, "GPU below 0.6 of its fair share"), (3, "even"), (5, "1.2 to 1.5"), (7, "2 and more"))
    return [*(key(f"s{at}", name) for at, name in links), *(key(f"d{at}", name) for at, name in gpus)]


def _tiers(told: Told) -> Content:
    rows = [
        [
            f"{row.tier} ({row.where})",
            row.units,
            " to ".join(dict.fromkeys(map(human_bandwidth, row.per_gpu_bytes_per_s))),
            human_bandwidth(row.bisection_bytes_per_s),
            f"{row.oversubscription:.3g} x",
            [[kind_tag(kind), " "] for kind in row.evidence],
        ]
        for row in tiers_table(told.problem.topology)
    ]
    names = ("tier", "units", "per GPU, each way", "bisection", "oversubscribed", "evidence")
    return table_of(names, rows, "Tiers; line rates per direction", words=(0, 5)) if rows else None


def _links(told: Told) -> Content:
    plan, default = told.traffic["plan"], told.traffic["engine default"]
    resources = told.problem.topology.resources
    order = np.lexsort((np.arange(len(resources)), -plan.seconds_R.round(15)))
    rows = [
        [
            resources[at].name,
            resources[at].tier,
            figure(human_bandwidth(resources[at].rate.bytes_per_s), resources[at].rate.bytes_per_s),
            kind_tag(resources[at].rate.evidence.kind),
            figure(human_bytes(plan.bytes_R[at]), float(plan.bytes_R[at])),
            figure(human_seconds(plan.seconds_R[at]), float(plan.seconds_R[at])),
            figure(human_bytes(default.bytes_R[at]), float(default.bytes_R[at])),
            figure(human_seconds(default.seconds_R[at]), float(default.seconds_R[at])),
        ]
        for at in order.tolist()
    ]
    names = ("link", "tier", "rate", "evidence", "plan", "busy", "engine default", "busy ")
    return folded_table(
        names, rows, "Links, the busiest first; bytes of a step's dispatches", words=(0, 1, 3)
    )
