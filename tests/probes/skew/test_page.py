"""The page of the benchmark of skew: its figures are those of the cells, good or bad."""

from dataclasses import replace

import numpy as np
import pytest

from probes.dispatch.seen import PHASES
from probes.skew.measured import Measured
from probes.skew.page import page_text
from tests.probes.skew.test_measured import timed


def measured(transport: str, modelled: float, took: float) -> Measured:
    """One load under one placement."""
    one = timed()
    expected = replace(one.expected, modelled=dict.fromkeys(PHASES, modelled))
    seconds_GN = {phase: np.full((4, 3), took) for phase in PHASES}
    return Measured(
        "2x2",
        transport,
        ("even",),
        (replace(one, expected=expected, seconds_GN=seconds_GN),),
        "",
        "today",
        "here",
    )


def test_the_page_tells_errors_winners_and_what_was_missed() -> None:
    """`rank` was predicted the faster and was not; half of the phases are 20 % off, the others exact."""
    text = page_text([measured("slot", 1.0, 1.0), measured("rank", 0.96, 1.2)])
    assert "| settings | at least 60 | 2 | no |" in text
    assert "| mean error before calibration | at most 10% | 10.0% (bias -10.0%, worst 20.0%) | yes |" in text
    assert (
        "| mean error after calibration, on loads left out | at most 5% | not all could be calibrated | no |"
        in text
    )
    assert "| `slot` | dispatch | 1 |  | slot dispatch: 1 settings were run, a fit needs 6 |" in text
    assert "| winner of two transports measured more than 10% apart | every pair | 0 of 1 | no |" in text
    assert "`2x2` `slot` even, plan: 2000 / 2000" in text
    assert "| even | plan | 2000 / 2000 | 1920 / 2400 |" in text


@pytest.mark.parametrize("transport", ["slot", "node"])
def test_the_same_results_are_the_same_page(transport: str) -> None:
    """Nothing of the machine that writes it is on the page."""
    found = [measured(transport, 1.0, 1.0), measured("rank", 0.9, 1.0)]
    assert page_text(found) == page_text(found)
    assert "today, here." in page_text(found)
