"""The worked example of docs/cost-model.md: its arithmetic is right, and its values are the code's.

And no placement is better than it says.
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from planner.bounds import time_bound
from planner.bounds.time import bound_over_windows
from planner.cost import Cost, cost
from planner.load import LoadProfile
from planner.problem import Problem
from planner.solvers import Judge, Proof, prove
from tests.places import ROOT
from tests.planner.small import placed, question
from tests.planner.tiny import mean_seconds_L, price_all

PAGE = ROOT / "docs/cost-model.md"
ROW = re.compile(
    r"^\| (?P<plan>A|B|any) \| (?P<rule>even|nearest) \| (?P<figure>[^|]+) "
    r"\| `(?P<arithmetic>[^`]+)` \| (?P<value>[\d.]+) \|$",
    re.MULTILINE,
)
PLANS = {"A": [0, 2, 1, 3, 0, 2, 1, 3], "B": [0, 1, 0, 1, 2, 3, 2, 3]}
FIRST, SECOND = [2, 2, 1, 1], [1, 1, 2, 2]

OPERATORS: dict[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}
FIGURES: dict[str, Callable[[Cost], float]] = {
    "load of the busiest GPU": lambda found: found.load_LG.max(),
    "share that crosses nodes": lambda found: found.cross_node_share,
    "dispatch": lambda found: found.dispatch_seconds_L[0] * 1e6,
    "compute": lambda found: found.compute_seconds_L[0] * 1e6,
    "combine": lambda found: found.combine_seconds_L[0] * 1e6,
    "layer": lambda found: found.layer_seconds_L[0] * 1e6,
}


@dataclass(frozen=True)
class Row:
    plan: str
    rule: str
    figure: str
    arithmetic: str
    value: float


def rows() -> list[Row]:
    """The lines of the example's tables."""
    example = PAGE.read_text(encoding="utf-8").partition("## A worked example")[2].partition("\n## ")[0]
    return [
        Row(found["plan"], found["rule"], found["figure"], found["arithmetic"], float(found["value"]))
        for found in ROW.finditer(example)
    ]


def by_hand(arithmetic: str) -> float:
    """The value of sums, products and quotients of numbers; anything else is refused."""

    def value(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.BinOp():
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            case ast.UnaryOp():
                return OPERATORS[type(node.op)](value(node.operand))
            case _:
                raise ValueError(f"{arithmetic}: {ast.dump(node)} is no arithmetic")

    return value(ast.parse(arithmetic, mode="eval").body)


def windows_of(problem: Problem) -> list[LoadProfile]:
    return [replace(problem.load, tokens_WLE=np.array([[counts]])) for counts in (FIRST, SECOND)]


def by_the_code(row: Row) -> float:
    """What the code says of the row's figure."""
    problem = question(FIRST, rule=row.rule)
    if row.plan == "any":
        bound = time_bound(problem)
        seconds_L = (
            bound.layer_seconds_L
            if row.figure.endswith("layer")
            else getattr(bound, f"{row.figure.removeprefix('bound on ')}_seconds_L")
        )
        return float(seconds_L[0]) * 1e6
    placement = placed(PLANS[row.plan], problem)
    if row.figure == "mean over both windows":
        return float(mean_seconds_L(problem, windows_of(problem), placement)[0]) * 1e6
    if row.figure == "on the sum of both windows":
        return (
            cost(
                problem, placement, replace(problem.load, tokens_WLE=np.array([[np.add(FIRST, SECOND)]]))
            ).total_seconds
            * 1e6
        )
    return float(FIGURES[row.figure](cost(problem, placement)))


def test_the_example_is_read() -> None:
    """Guards the tests below: every line of the two tables is found."""
    example = PAGE.read_text(encoding="utf-8").partition("## A worked example")[2].partition("\n## ")[0]
    assert (
        len(rows())
        == sum(line.startswith(("| A |", "| B |", "| any |")) for line in example.splitlines())
        == 23
    )


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.plan} {row.rule} {row.figure}")
def test_the_example_is_right(row: Row) -> None:
    """The arithmetic gives the value, and so does the code, to the three decimals shown."""
    assert by_hand(row.arithmetic) == pytest.approx(row.value, abs=6e-4)
    assert by_the_code(row) == pytest.approx(row.value, abs=6e-4)


@pytest.mark.parametrize("rule", ["even", "nearest"])
def test_nothing_is_better_than_plan_a(rule: str) -> None:
    """All 978 placements: none takes less than A, under either rule; `--prove` says so too."""
    problem = question(FIRST, rule=rule)
    plan_a = placed(PLANS["A"], problem)
    best = price_all(problem).layer_seconds_L.min()
    assert cost(problem, plan_a).total_seconds == pytest.approx(best, rel=1e-12)
    judge = Judge(
        lambda placement: cost(problem, placement).layer_seconds_L,
        [problem.load],
        lambda seconds_WN: seconds_WN.mean(axis=0),
    )
    assert prove(problem, Proof(plan_a, np.zeros(1), np.zeros(1, dtype=bool)), judge).optimal_L.tolist() == [
        True
    ]


def test_the_bound_over_both_windows_is_met_by_plan_a() -> None:
    """Under `even` A is at the mean of the windows' bounds: no placement has a better mean."""
    problem = question(FIRST)
    windows = windows_of(problem)
    bound = bound_over_windows([time_bound(problem, window) for window in windows])[0]
    assert mean_seconds_L(problem, windows, placed(PLANS["A"], problem))[0] == pytest.approx(bound, rel=1e-9)
