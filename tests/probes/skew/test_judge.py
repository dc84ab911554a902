"""The figures of the benchmark of skew, on cells whose figures are known by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES
from probes.skew.judge import (
    Whole,
    by_placement,
    by_transport,
    correlations,
    errors,
    rank_correlation,
    waits,
    winners,
)
from probes.skew.measured import Measured
from tests.probes.skew.test_measured import RESOURCES, timed


def whole(transport: str, side: str, modelled: float, measured: float, setting: str = "even") -> Whole:
    """Of one shape."""
    return Whole("2x2", transport, setting, side, modelled, measured)


def test_errors_are_of_the_measured() -> None:
    """Ten percent above, twenty below."""
    found = errors([1.1, 1.6], [1.0, 2.0])
    assert (found.cells, found.mape, found.bias, found.worst) == pytest.approx((2, 0.15, -0.05, 0.2))


@given(values=st.lists(st.integers(0, 5), min_size=3, max_size=30).filter(lambda x: len(set(x)) > 1))
def test_any_rising_function_keeps_the_order(values: list[int]) -> None:
    """Also where some are equal."""
    a_N = np.array(values, dtype=float)
    assert rank_correlation(a_N, np.exp(a_N)) == pytest.approx(1)
    assert rank_correlation(a_N, -(a_N**3)) == pytest.approx(-1)


def test_rank_correlation_of_ties_by_hand() -> None:
    """Ranks 1.5, 1.5, 3 against 1, 2, 3."""
    assert rank_correlation(np.array([5.0, 5.0, 9.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(0.8660254)


def test_no_order_is_no_correlation() -> None:
    """All predicted alike."""
    assert rank_correlation(np.ones(3), np.arange(3.0)) == 0


def test_a_winner_is_sought_among_pairs_that_were_measured_apart() -> None:
    """5 % apart is none; of the others one was predicted the wrong way."""
    found = winners(
        [
            whole("slot", "plan", 1.0, 1.00),
            whole("slot", "linear", 2.0, 1.05),
            whole("rank", "plan", 1.0, 1.0),
            whole("rank", "linear", 1.5, 2.0),
            whole("node", "plan", 1.2, 1.0),
            whole("node", "linear", 1.1, 1.3),
        ],
        by_placement,
    )
    assert (found.pairs, found.right) == (2, 1)
    assert [(faster.transport, faster.side) for faster, _ in found.wrong] == [("node", "plan")]


def test_equal_predictions_name_no_winner() -> None:
    """What is predicted equal and measured apart counts as wrong."""
    pair = [whole("slot", "plan", 1.0, 1.0), whole("rank", "plan", 1.0, 2.0)]
    assert winners(pair, by_transport).right == 0


def test_correlation_is_within_a_shape() -> None:
    """Two shapes whose order is right each, and not together."""
    cells = [
        Whole("a", "slot", "even", "plan", 1.0, 10.0),
        Whole("a", "slot", "hot", "plan", 2.0, 20.0),
        Whole("b", "slot", "even", "plan", 3.0, 1.0),
        Whole("b", "slot", "hot", "plan", 4.0, 2.0),
    ]
    assert correlations(cells) == pytest.approx({"a": 1.0, "b": 1.0})


def test_predictions_that_claim_no_order_count_as_one() -> None:
    """Three of nearly one prediction, measured in any order, beside one that is far: their mean is first."""
    pairs = ((1.0, 1.2), (1.001, 1.1), (1.002, 1.0), (2.0, 2.1))
    wholes = [Whole("a", "slot", str(n), "plan", *pair) for n, pair in enumerate(pairs)]
    assert correlations(wholes)["a"] < 0.5
    assert correlations(wholes, 0.01)["a"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("took", "expected"),
    [
        ([1.2, 0.6, 0.6, 0.6], (2, 2, 0)),  # rank 0, whose NIC is the busiest, is the last one
        ([0.6, 0.6, 1.18, 0.6], (2, 0, 0)),  # rank 2 is, and nothing of it goes over that NIC
        ([9.0, 9.0, 9.0, 9.0], (2, 0, 2)),  # nothing takes so long
    ],
)
def test_a_resource_is_right_where_the_times_show_it(
    took: list[float], expected: tuple[int, int, int]
) -> None:
    """The NIC of rank 0 is the busiest by bytes; what the ranks took says whether it was waited for."""
    one, second = timed(), RESOURCES.index("node1/nic0/in")
    to_0_and_2_GG = np.array([[0.0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    seconds_R = one.expected.drawn_R["dispatch"].copy()
    seconds_R[second] = 1.15
    shown = replace(
        one,
        seconds_GN={phase: np.tile(np.array(took)[:, None], 3) for phase in PHASES},
        expected=replace(
            one.expected,
            bytes_GG=dict.fromkeys(EXCHANGES, to_0_and_2_GG),
            drawn_R=dict.fromkeys(EXCHANGES, seconds_R),
        ),
    )
    found = waits([Measured("2x2", "slot", ("even",), (shown,), "", "", "")])
    assert (found.phases, found.right, found.untold) == expected
