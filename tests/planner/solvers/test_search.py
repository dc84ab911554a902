"""Settings of a search that no solver takes are refused before it starts."""

import math

import pytest
from click.testing import CliRunner

from planner.base import BadInput
from planner.cli import main
from planner.solvers import Search
from planner.solvers.search import LARGEST_SEED


@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1, 10**20])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    """CP-SAT takes whole numbers of 31 bits."""
    with pytest.raises(BadInput, match=f"--seed {seed}: give a whole number from 0 to 2147483647"):
        Search(seed=seed)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_that_is_no_time_is_refused(seconds: float) -> None:
    """Not a number is not 'no limit'."""
    with pytest.raises(BadInput, match="--budget"):
        Search(budget_seconds=seconds)


def test_the_largest_seed_is_taken() -> None:
    """The limit is where it is said to be."""
    question = ["--model", "mixtral", "--topology", "hgx-h100:1x4", "--redundant", "0"]
    command = ["solve", *question, "--method", "greedy", "--seed"]
    assert CliRunner().invoke(main, [*command, str(LARGEST_SEED)]).exit_code == 0
    result = CliRunner().invoke(main, [*command, str(LARGEST_SEED + 1)])
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
