"""Loads that nobody measured here: the published figures, and the even load."""

import numpy as np
import pytest

from planner.load import shipped_load, split_windows, uniform_load
from tests.places import SHARED
from tests.planner.load.files import model

RECORDINGS = SHARED / "data/loads"


def test_the_shipped_load_of_mixtral() -> None:
    """The published figures: five domains, equal totals, three measured layers;
    papers and code are held out.
    """
    load = shipped_load(model(layers=32, experts=8, dense=0, name="mistralai/Mixtral-8x7B-v0.1"))
    assert load is not None
    assert load.window_unit == "domain"
    assert "OLMoE" in load.source
    assert load.tokens_WLE[:, [0, 7, 15]].sum(axis=2).tolist() == [[417_792] * 3] * 5
    assert load.tokens_WLE[0, 0].tolist() == [56947, 49733, 50426, 49453, 52127, 57956, 42632, 58518]
    assert len(load.unmeasured_layer_ids) == 29
    assert "only layers 0, 7, 15 are measured" in load.notes[0]
    fitted, held_out = split_windows(load)
    assert held_out is not None
    assert (fitted.window_names, held_out.window_names) == (("c4", "wikipedia", "book"), ("arxiv", "github"))


def test_the_shipped_figures_are_the_published_ones() -> None:
    """Every count against the published file."""
    path = RECORDINGS / "mixtral-8x7b_ai2_counts.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is third-party data and not here")
    load = shipped_load(model(layers=32, experts=8, dense=0, name="mixtral-8x7b"))
    assert load is not None
    with np.load(path) as published:
        for window, domain in enumerate(load.window_names):
            assert np.array_equal(load.tokens_WLE[window, [0, 7, 15]], published[f"expert_counts__{domain}"])


@pytest.mark.parametrize("name", ["mixtral-8x22b", "mixtral", "../loads/mixtral-8x7b-instruct", ""])
def test_no_other_model_gets_the_shipped_load(name: str) -> None:
    """Figures of one model say nothing about another."""
    assert shipped_load(model(name=name)) is None


def test_the_even_load_is_labelled_as_assumed() -> None:
    """Nobody can take it for a measurement."""
    load = uniform_load(model(draft=1))
    assert load.source == "assumed"
    assert load.unmeasured_layer_ids == load.layer_ids == (1, 2, 3)
    assert load.shares_LE.tolist() == [[0.25] * 4] * 3
    assert load.notes == ("no load given: every expert assumed equally loaded",)
