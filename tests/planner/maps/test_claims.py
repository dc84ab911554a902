"""What is said of a plan against what it says: which models are one, and in what two of them differ."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.maps.claims import contradictions
from planner.model import find_model
from tests.planner.engines.examples import machine, question
from tests.planner.model.configs import MIXTRAL

PROBLEM = question(find_model("mixtral"), machine(4), 4)


def said(model: str | None, ep: int | None = None) -> list[str]:
    return [found.text for found in contradictions(PROBLEM, "the plan", model, ep)]


def test_what_agrees_is_no_contradiction() -> None:
    """Any spelling of the model's name, its EP size, and nothing at all."""
    for model in (None, "mixtral", "mistralai/Mixtral-8x7B-v0.1", "MIXTRAL"):
        assert said(model, 4) == []


@pytest.mark.parametrize(("experts", "found"), [(8, []), (16, ["experts 8, not 16"])])
def test_a_config_is_any_model_of_its_shape(experts: int, found: list[str], tmp_path: Path) -> None:
    """Its folder's name says nothing; another number of experts does."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**MIXTRAL, "num_local_experts": experts}))
    texts = said(str(path))
    assert len(texts) == len(found)
    assert all(words in text for words, text in zip(found, texts, strict=True))


def test_both_contradictions_are_named() -> None:
    """Each with what the plan has."""
    model, ep = said("qwen3-30b", 8)
    assert model.startswith("the plan is for mistralai/Mixtral-8x7B-v0.1, not for Qwen/Qwen3-30B-A3B")
    assert "experts 8, not 128" in model
    assert ep == "the plan is for an EP size of 4, not 8"


def test_a_weight_format_is_no_shape() -> None:
    """A release in other numbers has the same experts in the same layers."""
    problem = replace(PROBLEM, model=replace(PROBLEM.model, name="mine", weight_dtype="fp8"))
    assert not list(contradictions(problem, "the plan", "mixtral", None))


def test_an_unknown_model_is_refused() -> None:
    """With the names like it."""
    with pytest.raises(BadInput, match="Nearest names are 'mixtral'"):
        said("mixtrall")
