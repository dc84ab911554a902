"""GPU-to-GPU traffic before and after: what the engine's default placement sends, and what the plan sends."""

import numpy as np

from planner.base import human_bytes
from planner.page.document import paragraphs
from planner.page.html import Content, figure
from planner.page.links import Floats, Traffic, by_node
from planner.page.tables import Scale, choice, heat_map, levels_of_share, table_of
from planner.page.told import Told

TITLE = "Traffic before and after"
MOST_GPUS = 64  # of more, traffic is shown between nodes alone


def section(told: Told) -> Content:
    if told.problem.gpus == 1:
        return paragraphs("One GPU: nothing is sent.")
    plan, default = told.traffic["plan"], told.traffic["engine default"]
    rows = [_summary(name, found, told) for name, found in (("engine default", default), ("this plan", plan))]
    workload = told.problem.workload
    allgather = workload.transport == "allgather"
    same = "; under allgather it is the same for every placement" if allgather else ""
    about = "Bytes that a step's dispatches send from each GPU (row) to each other (column), over all layers"
    names = ("placement", "between GPUs", "between nodes", "share", "most sent by a GPU", "most received")
    return [
        paragraphs(
            f"{about}, in {workload.dispatch_dtype} by transport '{workload.transport}'{same}. "
            "The combine sends the same messages back. What stays on its GPU is not counted."
        ),
        table_of(names, rows, "Dispatch traffic of a step"),
        _maps(told, {"engine default": _off_GG(default), "this plan": _off_GG(plan)}),
    ]


def _off_GG(found: Traffic) -> Floats:
    off_GG = found.bytes_GG.copy()
    np.fill_diagonal(off_GG, 0.0)
    return off_GG


def _summary(name: str, found: Traffic, told: Told) -> list[Content]:
    off_GG, node_G = _off_GG(found), told.problem.node_G
    total, away = float(off_GG.sum()), float(off_GG[node_G[:, None] != node_G[None, :]].sum())
    sent, received = float(off_GG.sum(axis=1).max()), float(off_GG.sum(axis=0).max())
    return [
        name,
        figure(human_bytes(total), total),
        figure(human_bytes(away), away),
        f"{away / total:.1%}" if total else "-",
        figure(human_bytes(sent), sent),
        figure(human_bytes(received), received),
    ]


def _maps(told: Told, sides: dict[str, Floats]) -> Content:
    """Between nodes where there are several, and between GPUs where these are not too many."""
    gpus, nodes = told.problem.gpus, told.problem.topology.node_count
    found: list[Content] = []
    if 1 < nodes < gpus:
        summed = {side: by_node(off_GG, told.problem.node_G) for side, off_GG in sides.items()}
        found.append(_pair(summed, "node"))
    if gpus <= MOST_GPUS:
        found.append(_pair(sides, "GPU"))
    else:
        found.append(
            paragraphs(f"{gpus} GPUs are too many to show each pair: `moeplan traffic` writes them all.")
        )
    return found


def _pair(sides: dict[str, Floats], what: str) -> Content:
    """Both sides on one scale."""
    most = max(float(one.max()) for one in sides.values())
    unit, name = _unit(most)
    scale = Scale(lambda value: f"{value:.3g}", levels_of_share(most / unit))
    count = len(next(iter(sides.values())))
    names = [f"{what} {number}" for number in range(count)]
    maps = [
        (
            side,
            heat_map(
                f"{side}: {name} from {what} to {what}; the darkest is {human_bytes(most)}",
                names,
                [(str(row), bytes_N) for row, bytes_N in enumerate(bytes_NN / unit)],
                scale,
                shown=count,
                corner=f"from {what}",
            ),
        )
        for side, bytes_NN in sides.items()
    ]
    return choice(maps)


def _unit(most: float) -> tuple[float, str]:
    return next(
        ((size, name) for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if most >= size), (1.0, "B")
    )
