"""Random placements, and what a rule makes of them."""

from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from planner.model import ModelSpec
from planner.placement import Placement
from planner.replica import Shares, Situation
from planner.replica.registry import RULES
from tests.planner.small import Ints, random_row, small_model


@st.composite
def placements(draw: st.DrawFn) -> tuple[Placement, ModelSpec, Ints]:
    """A placement, its model (a dense layer, two MoE layers, a draft layer) and node_G of nodes that need
    not be equal.
    """
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    experts = draw(st.integers(1, 6))
    gpus = sum(sizes)
    slots_per_gpu = draw(st.integers(-(-experts // gpus), experts))
    model = small_model(experts, layers=3, moe_layer_ids=(1, 2), draft_layer_ids=(3,))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = [random_row(rng, experts, gpus, slots_per_gpu) for _ in model.placed_layer_ids]
    return (
        Placement(np.array(rows), model.placed_layer_ids, gpus),
        model,
        np.repeat(np.arange(len(sizes)), sizes),
    )


def shares(rule: str, placement: Placement, model: ModelSpec, node_G: Ints) -> Iterator[Shares]:
    return RULES[rule](placement, Situation(model, node_G))


def served(rule: str, row: list[int], node_G: Ints, experts: int, expert: int) -> list[float]:
    """How many source ranks each replica of an expert serves, in slot order."""
    placement = Placement(np.array([row]), (0,), len(node_G))
    share_SP = next(shares(rule, placement, small_model(experts), node_G))
    share_GP = np.broadcast_to(share_SP, (len(node_G), len(row)))
    return [float(share) for share in share_GP.sum(axis=0)[np.array(row) == expert]]
