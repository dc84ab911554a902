"""The line of `solve` about narrower layouts: there where one serves more, with figures that hold."""

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.cost import whole_step
from planner.load import LoadProfile, uniform_load
from planner.model import find_model
from planner.plan import Plan
from planner.planning import PlanRequest, answer
from planner.planning.narrower import Narrower
from planner.problem import Survival

WIDE = PlanRequest("olmoe", topology="hgx-h100:2", redundant=0, method="linear", workers=1)


def line(plan: Plan) -> str:
    return next((note for note in plan.origin.notes if "on the same GPUs" in note), "")


def tokens(plan: Plan) -> float:
    return whole_step(plan.problem, plan.held_out or plan.fitted, plan.origin.engine).tokens_per_s_per_gpu


def test_a_narrower_layout_that_serves_more_is_named_with_what_it_gains() -> None:
    """An even load: groups that no bytes leave are faster; the gain is that of `solve --ep` itself."""
    wide = answer(WIDE)
    said = re.match(
        r"WARNING: (\d+) x EP(\d+) with R = 0 on the same GPUs is predicted to serve ", line(wide)
    )
    assert said
    groups, ep = int(said[1]), int(said[2])
    assert groups * ep == 16
    narrow = answer(replace(WIDE, ep=ep, method="refine"))
    assert f"{tokens(narrow) / tokens(wide) - 1:.1%} more tokens/s" in line(wide)
    assert f"--ep {ep}," in line(wide)
    others = (answer(replace(WIDE, ep=size, method="refine")) for size in (2, 4, 8) if size != ep)
    assert all(tokens(other) <= tokens(narrow) for other in others)


def test_nothing_is_said_where_no_layout_is_narrower() -> None:
    assert line(answer(replace(WIDE, ep=1, method="refine"))) == ""


def test_nothing_is_said_where_the_plan_promises_what_groups_would_not() -> None:
    """Every expert after a loss."""
    assert line(answer(replace(WIDE, redundant=64, survive=Survival(gpus=1)))) == ""


def skewed(seed: int) -> LoadProfile:
    """Twelve windows of experts whose popularity is far from even, made here."""
    model = find_model("deepseek-v3")
    rng, layers = np.random.default_rng(seed), len(model.placed_layer_ids)
    popular = np.stack([rng.permutation((np.arange(256) + 1.0) ** -1.0) for _ in range(layers)])
    counts = popular / popular.sum(axis=1, keepdims=True) * 1e6
    counts_WLE = counts * rng.lognormal(0, 0.1, size=(12, layers, 256))
    return replace(uniform_load(model), tokens_WLE=counts_WLE.astype(np.int64), source="made for tests")


def test_many_replicas_on_two_nodes_are_held_against_two_groups_of_one() -> None:
    """A plan praised against its own default, whose layout is the fault."""
    plan = answer(
        PlanRequest(
            "deepseek-v3",
            topology="hgx-h200:2",
            load_files=skewed(1),
            redundant=112,
            engine="sglang",
            method="refine",
            workers=1,
        )
    )
    best_default = min((one.held_out or one.fitted).total_seconds for one in plan.baselines)
    assert (plan.held_out or plan.fitted).total_seconds < 0.7 * best_default
    assert line(plan).startswith("WARNING: 2 x EP8 with R = ")


@pytest.mark.parametrize(
    ("gain", "spared", "error", "worth"),
    [
        (0.05, 0, None, True),
        (0.005, 0, 0.2, False),
        (-0.01, 7, None, True),
        (-0.05, 7, None, False),
        (-0.05, 7, 0.15, True),
        (-0.05, 0, 0.15, False),
    ],
)
def test_a_little_less_is_worth_naming_only_where_it_spares_replicas(
    gain: float, spared: int, error: float | None, worth: bool
) -> None:
    """Within the model's error, or 2 % where that is not known."""
    assert Narrower(2, 8, 0, 100.0, gain, spared, error).worth_it == worth


def test_a_gain_within_the_models_error_says_so() -> None:
    assert "5.0% more tokens/s, within the model's error of 20%" in str(
        Narrower(2, 8, 0, 100.0, 0.05, 0, 0.2)
    )
    less = str(Narrower(2, 8, 0, 100.0, -0.05, 7, 0.2))
    assert "as many tokens/s within the model's error of 20% (-5.0%), with fewer replicas" in less
    assert "error" not in str(Narrower(2, 8, 0, 100.0, 0.25, 0, 0.2))
