"""The loads of the benchmark of skew: as skewed as they are called, the same on every machine."""

import numpy as np
import pytest

from planner.cost import inclusion_E
from planner.problem import TRANSPORTS, violations
from planner.solvers import find_method
from probes.skew.settings import EXPERTS, TOP_K, question, settings, units_of
from probes.skew.shapes import SHAPES, shape

METHODS = {"plan": find_method("refine"), "linear": find_method("linear")}


@pytest.mark.parametrize("name", SHAPES)
def test_a_load_is_as_skewed_as_it_is_called(name: str) -> None:
    """Of experts, or of GPUs with the experts in their order; no expert is asked more than once a token."""
    for one in settings(shape(name)):
        counted_X = one.share_E if one.of == "experts" else one.share_E.reshape(4, -1).sum(axis=1)
        assert counted_X.max() * len(counted_X) == pytest.approx(one.max_over_mean)
        assert one.share_E.sum() == pytest.approx(1)
        assert inclusion_E(one.share_E, TOP_K) == pytest.approx(one.share_E * TOP_K)


@pytest.mark.parametrize("name", ["2x2", "racks"])
def test_uneven_inside_is_even_over_units(name: str) -> None:
    """Units get alike, the GPUs of each do not."""
    (one,) = [one for one in settings(shape(name)) if one.name == "uneven inside units"]
    share_G = one.share_E.reshape(4, -1).sum(axis=1)
    unit_G = units_of(shape(name))
    assert np.bincount(unit_G, weights=share_G) == pytest.approx([0.5, 0.5])
    assert share_G * 4 == pytest.approx([1.75, 0.25, 1.75, 0.25])


def test_units_of_one_gpu_have_no_inside() -> None:
    """So that setting is left out there."""
    assert {name: len(settings(shape(name))) for name in SHAPES} == {
        "2x2": 10,
        "4x1": 9,
        "leaves": 9,
        "racks": 10,
    }


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_question_is_a_problem_with_a_layer_a_setting(transport: str) -> None:
    """Placements of all methods are valid; a plan made for another load is not the best of its own."""
    asked = question(shape("2x2"), transport, METHODS)
    assert asked.problem.load.shares_LE == pytest.approx(np.array([one.share_E for one in asked.settings]))
    assert asked.problem.model.experts == EXPERTS
    for placement in asked.placements.values():
        assert not violations(asked.problem, placement)


def test_stale_plans_are_made_for_another_load() -> None:
    """The hot rank has moved on; the burst was not there."""
    stale = {one.name for one in settings(shape("2x2")) if (one.share_E != one.planned_E).any()}
    assert stale == {"rotating hot rank", "burst"}


def test_oversubscribed_leaves_are_waited_for() -> None:
    """The shape has what it is there for: an uplink with half of the rates below it."""
    topology = shape("leaves")
    rates = {one.name: rate for one, rate in zip(topology.resources, topology.capacity_R, strict=True)}
    assert rates["leaf0/up"] == pytest.approx(rates["node0/nic0/out"] * 2 / 2)
