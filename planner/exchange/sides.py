"""Which exchanges of a plan are written: by layer, of the plan and of the engine's default placement."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.base import BadInput, is_whole
from planner.cost import Exchange, cost, exchanges_L
from planner.placement import Placement
from planner.problem import Problem

PLAN, DEFAULT = "plan", "default"
BUSIEST, ALL = "busiest", "all"


@dataclass(frozen=True, eq=False)
class LayerExchange:
    """An exchange of one layer under one placement."""

    side: str
    layer_id: int
    exchange: Exchange

    @property
    def folder(self) -> str:
        """Where its files lie: each has a folder, since cloudai looks for files of fixed names."""
        phase, hop = self.exchange.phase, self.exchange.hop
        return f"{self.side}/layer-{self.layer_id:03d}/{phase}{f'-{hop}' if hop else ''}"


def layer_exchanges(problem: Problem, sides: Mapping[str, Placement], layers: str) -> list[LayerExchange]:
    """Of every side and chosen layer. BadInput where nothing is sent at all."""
    rows = chosen_rows(problem, sides[PLAN], layers)
    found = [
        LayerExchange(side, placement.layer_ids[row], exchange)
        for side, placement in sides.items()
        for row, exchanges in zip(rows, exchanges_L(problem, placement, rows), strict=True)
        for exchange in exchanges
    ]
    if problem.gpus < 2:
        raise BadInput("the plan is for one GPU: it sends nothing that an all-to-all could send")
    return found


def chosen_rows(problem: Problem, placement: Placement, layers: str) -> list[int]:
    """Rows of `busiest` (its busiest GPU most above the mean; ties go to the lower layer), `all`, or ids."""
    ids = placement.layer_ids
    if layers == ALL:
        return list(range(len(ids)))
    if layers == BUSIEST:
        return [int(np.argmax(cost(problem, placement).max_over_mean_L.round(12)))]
    asked = [word.strip() for word in layers.split(",")]
    for word in asked:
        if not is_whole(word) or int(word) not in ids:
            raise BadInput(
                f"--layers {layers!r}: {word!r} is no layer of the plan; give {BUSIEST}, {ALL}, or ids "
                f"like {ids[0]} of its layers {ids[0]} to {ids[-1]}"
            )
    return sorted({ids.index(int(word)) for word in asked})
