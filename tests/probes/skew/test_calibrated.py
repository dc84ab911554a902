"""Errors after calibration: nothing is left of a start-up and an efficiency, all of what no line explains."""

from dataclasses import replace

import numpy as np
import pytest

from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES
from probes.skew.calibrated import calibrated, mean_error
from probes.skew.measured import Measured
from tests.probes.skew.test_measured import RESOURCES, timed

SHARES = {"nvlink": 0.8, "nic": 0.9}


def measured(noise: float, loads: int = 8) -> Measured:
    """Half of the loads wait for NVLink, half for a NIC; each took 5 ms and what the shares of rates say."""
    rows = []
    for row in range(loads):
        tier = "nvlink" if row % 2 else "nic"
        seconds_R = np.array([0.01 if f"{tier}" in name else 0.001 for name in RESOURCES]) * (2 + row)
        took = 0.005 + seconds_R.max() / SHARES[tier]
        took *= 1 + noise * (-1) ** (row // 2)
        one = timed(row)
        expected = replace(one.expected, drawn_R=dict.fromkeys(EXCHANGES, seconds_R))
        seconds_GN = {phase: np.full((4, 3), took) for phase in PHASES}
        rows.append(replace(one, expected=expected, seconds_GN=seconds_GN))
    names = tuple(f"load {row}" for row in range(loads))
    return Measured("2x2", "slot", names, tuple(rows), "", "", "")


def test_start_up_and_efficiency_leave_no_error() -> None:
    """Found on some loads, right on the others."""
    found = calibrated([measured(0.0)])
    assert [(one.phase, one.settings) for one in found] == [("dispatch", 8), ("combine", 8)]
    assert mean_error(found) == pytest.approx(0, abs=1e-3)
    assert found[0].said == "start-up 5.0 ms, 80.0% of nvlink, 90.0% of nic"


def test_what_scatters_stays() -> None:
    """Ten percent up and down is no start-up."""
    left = mean_error(calibrated([measured(0.1)]))
    assert left is not None
    assert left > 0.05


def test_too_few_settings_are_said() -> None:
    """No figure is made up."""
    found = calibrated([measured(0.0, loads=2)])
    assert mean_error(found) is None
    assert "2 settings were run, a fit needs 6" in found[0].said
