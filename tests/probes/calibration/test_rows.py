"""What a calibration runs: legal placements, loads of known skew, a row for each load and layer."""

import numpy as np
import pytest

from planner.base import BadInput
from planner.engines import default_placement
from planner.problem import violations
from probes.calibration.rows import asked_of, job_of
from probes.calibration.run import calibrate_machine
from probes.dispatch.validation import Contender, Settings
from tests.planner.small import question, two_nodes

PROBLEM = question()
PLACED = default_placement(None, PROBLEM)
SIDES = {"plan": PLACED, "default": PLACED}


def test_every_placement_keeps_the_rules() -> None:
    asked = asked_of(PROBLEM, SIDES, [0], 32, seed=3)
    assert list(asked.placements) == ["plan", "default", "random-0", "random-1"]
    for placement in asked.placements.values():
        assert not violations(asked.problem, placement)


def test_loads_are_as_skewed_as_they_say() -> None:
    asked = asked_of(PROBLEM, SIDES, [0], 32, seed=3)
    for skew in (2.0, 4.0):
        share_E = asked.loads[f"skew {skew:g}"].shares_LE[0]
        assert share_E.max() * len(share_E) == pytest.approx(skew, rel=1e-3)


def test_a_job_has_a_row_for_each_load_and_layer() -> None:
    asked = asked_of(PROBLEM, SIDES, [0], 32, seed=3)
    job = job_of(asked, Settings(tokens=32))
    assert asked.names == ["the plan's load, 32 tokens", "skew 2, 32 tokens", "skew 4, 32 tokens"]
    assert job.shares_LE.shape == (3, 4)
    assert (job.tokens_per_rank, len(job.sides)) == (32, 4)
    np.testing.assert_array_equal(job.shares_LE[0], PROBLEM.load.shares_LE[0])


def test_gloo_is_not_fitted_to_links_that_it_was_never_measured_on() -> None:
    """Nothing is started."""
    problem = question(topology=two_nodes("preset"))
    sides = {name: Contender(problem, placement) for name, placement in SIDES.items()}
    with pytest.raises(BadInput, match="is preset, not measured; emulate the machine with --emulate"):
        calibrate_machine(sides, Settings(tokens=8, device="cpu"), "2026-01-15")
