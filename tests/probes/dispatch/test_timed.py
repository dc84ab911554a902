"""Times of a layer: the slowest rank of each repeat, then the median; missing phases are refused."""

import numpy as np
import pytest

from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES, Expected, Timed


def make_expected() -> Expected:
    """One second each, over no resource."""
    return Expected(
        modelled=dict.fromkeys(PHASES, 1.0),
        drawn=dict.fromkeys(PHASES, 1.0),
        drawn_R=dict.fromkeys(EXCHANGES, np.zeros(0)),
        start=dict.fromkeys(EXCHANGES, 0.0),
        bytes_GG=dict.fromkeys(EXCHANGES, np.zeros((2, 2))),
        bytes_per_s_R=dict.fromkeys(EXCHANGES, np.zeros(0)),
        compute_G=np.ones(2),
    )


def test_a_phase_takes_as_long_as_its_slowest_rank() -> None:
    """Ranks take (1, 9, 3) and (2, 5, 2) seconds: the slowest are (2, 9, 3), their median is 3."""
    seconds_GN = np.array([[1.0, 9.0, 3.0], [2.0, 5.0, 2.0]])
    timed = Timed("plan", 4, 0, dict.fromkeys(PHASES, seconds_GN), make_expected())
    assert timed.repeats == 3
    assert timed.slowest_N("combine").tolist() == [2.0, 9.0, 3.0]
    assert timed.seconds("combine") == 3.0


def test_a_phase_that_is_missing_is_our_own_fault() -> None:
    """Nothing can be judged of what was not timed."""
    with pytest.raises(ValueError, match="plan, row 0"):
        Timed("plan", 4, 0, {"dispatch": np.ones((2, 3))}, make_expected())
    with pytest.raises(ValueError, match="modelled has phases"):
        Expected({"dispatch": 1.0}, {}, {}, {}, {}, {}, np.ones(2))
