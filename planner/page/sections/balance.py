"""Load of each GPU in each layer, the worst layers first: of the plan on both loads, and of the default."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from planner.cost import Cost
from planner.page.charts import key
from planner.page.document import paragraphs
from planner.page.html import Content, Html, markup, tag
from planner.page.tables import EVEN_EDGES, Scale, choice, heat_map, levels_of_even
from planner.page.told import Told

TITLE = "Load of GPUs"
SCALE = Scale(lambda value: f"{value:.2f}", levels_of_even, "d")
MOST_COLUMNS = 64  # of more GPUs, each node's busiest is shown

Floats = npt.NDArray[np.float64]


def section(told: Told) -> Content:
    sides = [("plan, held-out", told.held_out), ("plan, fitted", told.fitted)]
    default = told.side.replace("_", "-")
    costs: list[tuple[str, Cost]] = [(name, found) for name, found in sides if found is not None]
    costs.append((f"engine default, {default}", told.default_cost))
    silent = [str(layer) for layer, none in zip(told.layer_ids, told.judged.silent_L, strict=True) if none]
    about = "each node's busiest GPU" if _folds(told) else "each GPU"
    return [
        paragraphs(
            f"What {about} carries in each layer, over its fair share (1 is even); a step waits for the "
            "largest. All sides have the layers in the plan's order, worst first.",
            f"No assignment was counted in layers {', '.join(silent)}: taken as even." if silent else None,
        ),
        _legend(),
        choice([(name, _map(told, name, found)) for name, found in costs]),
    ]


def _folds(told: Told) -> bool:
    return told.problem.gpus > MOST_COLUMNS


def _map(told: Told, name: str, found: Cost) -> Html:
    over_LG = (found.busy_LG / found.fair_L[:, None])[told.worst_first]
    columns = [f"GPU {gpu}" for gpu in range(told.problem.gpus)]
    if _folds(told):
        starts = np.flatnonzero(np.diff(told.problem.node_G, prepend=-1))
        over_LG = np.maximum.reduceat(over_LG, starts, axis=1)
        columns = [f"node {node}" for node in range(len(starts))]
    layers = [str(told.layer_ids[row]) for row in told.worst_first]
    caption = f"{name}: max/mean over all layers {found.max_over_mean:.4f}"
    return heat_map(caption, columns, list(zip(layers, over_LG, strict=True)), SCALE)


def _legend() -> Html:
    edges = [f"{edge:g}" for edge in EVEN_EDGES]
    names = [f"below {edges[0]}", *(f"{low} to {high}" for low, high in pairwise(edges))]
    names.append(f"{edges[-1]} and more")
    return tag("p", markup([key(f"d{level}", name) for level, name in enumerate(names)]))
