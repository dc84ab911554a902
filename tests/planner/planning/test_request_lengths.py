"""How long requests are and how many GPUs share their attention: as asked, or assumed and said so."""

from typing import Any

import pytest

from planner.base import BadInput
from planner.planning.lookup import request_lengths
from planner.planning.request import PlanRequest
from planner.planning.verbs import solve
from planner.problem import Workload


@pytest.mark.parametrize(
    ("asked", "lengths"),
    [
        ({}, (1024, 1024)),
        ({"context": 8193}, (4097, 4096)),
        ({"isl": 4000}, (4000, 1024)),
        ({"isl": 4000, "osl": 10}, (4000, 10)),
    ],
)
def test_lengths(asked: dict[str, Any], lengths: tuple[int, int]) -> None:
    """A context is prompt and output half and half; what is not said is 1,024."""
    assert request_lengths(PlanRequest("mixtral", **asked)) == lengths


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"context": 4096, "isl": 4}, "--context 4096: --context is --isl and --osl together"),
        ({"context": 1}, "give 2 or more"),
        ({"isl": 0}, "prompt tokens is 0"),
        ({"osl": -3}, "output tokens is -3"),
        ({"attention_tp": 0}, "attention tp is 0"),
        ({"attention_tp": 3}, "--attention-tp 3 does not divide 8 GPUs; use one of 1, 2, 4, 8"),
    ],
)
def test_what_cannot_be(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        solve("mixtral", "hgx-h100:1", method="linear", **asked)


def test_an_assumed_context_is_told_from_a_given_one() -> None:
    assumed, given = (
        solve("mixtral", "hgx-h100:1", method="linear", redundant=8, context=context).problem.workload
        for context in (None, 2048)
    )
    assert (assumed.context_tokens, assumed.context_given) == (2048, False)
    assert (given.context_tokens, given.context_given) == (2048, True)
    assert Workload().context_tokens == 2048
