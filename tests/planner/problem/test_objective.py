"""One number a layer from many windows: each law by hand, and what is refused."""

import numpy as np
import pytest

from planner.base import BadInput
from planner.problem import Objective, parse_objective

SECONDS_WL = np.array([[1.0, 5.0], [3.0, 5.0], [8.0, 2.0]])
WEIGHTS, DOMAINS = (2, 1, 1), ("chat", "chat", "code")


def test_mean_weighs_windows_by_how_many_they_stand_for() -> None:
    """(2 · 1 + 3 + 8) / 4 and (2 · 5 + 5 + 2) / 4."""
    assert Objective().seconds_L(SECONDS_WL, WEIGHTS, DOMAINS).tolist() == [3.25, 4.25]


def test_worst_is_the_worst_window_of_each_layer() -> None:
    """Each layer has its own."""
    assert Objective("worst").seconds_L(SECONDS_WL, WEIGHTS, DOMAINS).tolist() == [8, 5]


def test_risk_adds_deviations() -> None:
    """Windows at 1 and 3 have the mean 2 and the standard deviation 1."""
    assert Objective("risk", 0.5).seconds_L(np.array([[1.0], [3.0]]), (1, 1), ("", "")).tolist() == [2.5]


@pytest.mark.parametrize(("kind", "expected"), [("mean", [8, 5]), ("worst", [8, 5])])
def test_robust_takes_the_worst_domain(kind: str, expected: list[float]) -> None:
    """Chat is (2 · 1 + 3) / 3 and 5 on average; code 8 and 2."""
    assert Objective(kind, robust=True).seconds_L(SECONDS_WL, WEIGHTS, DOMAINS).tolist() == expected


def test_robust_keeps_the_law_over_windows_inside_a_domain() -> None:
    """The worst of the domains' means is below the worst window."""
    assert Objective(robust=True).seconds_L(SECONDS_WL[:2], (1, 1), ("a", "a")).tolist() == [2, 5]


@pytest.mark.parametrize("text", ["mean", "worst", "risk:1", "risk:0.25"])
def test_text_reads_back(text: str) -> None:
    """What a plan shows is what the flag takes."""
    assert parse_objective(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "median",
        "worst:1",
        "mean:",
        "risk",
        "risk:",
        "risk:x",
        "risk:0",
        "risk:-1",
        "risk:nan",
        "risk:inf",
        "Risk:1",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """One line that names the forms there are, or the factor."""
    with pytest.raises(BadInput, match=r"risk:1") as caught:
        parse_objective(text)
    assert "\n" not in str(caught.value)
