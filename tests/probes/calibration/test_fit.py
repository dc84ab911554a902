"""Fits: known figures are found again, unseen tiers are left alone, what is no line is refused.

Shapes: R resources.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from planner.base import BadInput
from probes.calibration.fit import Fitted, Setting, fit

TIERS = ("nvlink", "nvlink", "nic", "nic", "leaf")
PRIOR = {"nvlink": 0.6, "nic": 0.9, "leaf": 0.9}
PLACEMENTS, LOADS = (
    ("plan", "default", "random-0", "random-1"),
    ("skew-1", "skew-2", "skew-4", "skew-8", "hot", "burst"),
)


def settings(
    start: float, efficiency: dict[str, float], seed: int = 0, noise: float = 0.0, never: str = ""
) -> list[Setting]:
    """Every placement on every load, 1 to 10 ms of the tier that is loaded most, each in its turn but
    `never`; the others have a fifth of that.
    """
    draw = np.random.default_rng(seed)
    share_R = np.array([efficiency[tier] for tier in TIERS])
    turn = [at for at, tier in enumerate(TIERS) if tier != never]
    found = []
    for number, (placement, load) in enumerate(product(PLACEMENTS, LOADS)):
        most = 10 ** draw.uniform(-3, -2)
        seconds_R = draw.uniform(0.02, 0.2, len(TIERS)) * most * share_R
        busiest = turn[number % len(turn)]
        seconds_R[busiest] = most * share_R[busiest]
        seconds = (start + (seconds_R / share_R).max()) * (1 + noise * draw.standard_normal())
        found.append(Setting(placement, load, float(seconds), seconds_R))
    return found


def fitted(found: Sequence[Setting], **changes: Any) -> Fitted:
    return fit(found, **({"tier_R": TIERS, "prior": PRIOR, "what": "slot dispatch"} | changes))


def shares(found: Fitted) -> dict[str, float]:
    return {one.tier: one.efficiency for one in found.reached}


def test_figures_behind_settings_are_found_again() -> None:
    found = fitted(settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}))
    assert found.start_seconds == pytest.approx(0.002, rel=1e-6)
    assert shares(found) == pytest.approx({"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, rel=1e-6)
    assert found.held_out_error < 1e-6
    assert sum(one.settings for one in found.reached) >= found.settings == 24


def test_a_tier_that_nobody_waited_for_keeps_what_it_had() -> None:
    found = fitted(settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, never="nvlink"))
    assert found.unseen == ("nvlink",)
    assert shares(found) == pytest.approx({"nic": 0.8, "leaf": 0.7}, rel=1e-6)


def test_what_was_thought_of_a_tier_does_not_stand_against_what_was_measured() -> None:
    """Taken for a tenth as fast as it is, NVLink would seem to be waited for by all."""
    run = settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7})
    found = fitted(run, prior={"nvlink": 0.05, "nic": 0.9, "leaf": 0.9})
    assert shares(found) == pytest.approx({"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, rel=1e-6)


def test_two_tiers_that_are_always_as_slow_have_one_share() -> None:
    run = settings(0.001, {"nvlink": 0.5, "nic": 0.95, "leaf": 0.95}, never="nvlink")
    alike = [Setting(one.placement, one.load, one.seconds, one.seconds_R.copy()) for one in run]
    for one in alike:
        one.seconds_R[4] = one.seconds_R[2] = one.seconds_R[3] = one.seconds_R.max()
    again = [
        Setting(one.placement, one.load, 0.001 + one.seconds_R.max() / 0.95, one.seconds_R) for one in alike
    ]
    found = fitted(again)
    assert found.error < 1e-6
    assert shares(found)["nic"] == pytest.approx(0.95)


def test_tiers_that_are_loaded_alike_are_told_apart_by_what_was_thought_of_them() -> None:
    """NVLink has an eighth of the NIC's seconds in every setting: both could be what is waited for."""
    draw = np.random.default_rng(2)
    run = []
    for one in settings(0.002, PRIOR):
        seconds_R = np.array([0.125, 0.125, 1, 1, 0.01]) * 10 ** draw.uniform(-3, -1)
        seconds = (0.002 + seconds_R.max() / 0.92) * (1 + 0.02 * draw.standard_normal())
        run.append(Setting(one.placement, one.load, seconds, seconds_R))
    assert shares(fitted(run)) == pytest.approx({"nic": 0.92}, rel=0.05)


def test_noise_of_two_percent_moves_shares_by_little() -> None:
    found = fitted(settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, noise=0.02))
    assert found.start_seconds == pytest.approx(0.002, abs=5e-4)
    assert shares(found) == pytest.approx({"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, rel=0.06)
    assert 0.005 < found.error < 0.03
    assert found.held_out_error >= found.error * 0.8


def test_two_settings_of_many_that_a_busy_machine_spoilt_have_little_say() -> None:
    run = settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, noise=0.005)
    for at in (3, 10):
        run[at] = Setting(run[at].placement, run[at].load, 2 * run[at].seconds, run[at].seconds_R)
    assert shares(fitted(run)) == pytest.approx({"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, rel=0.05)


def test_the_order_of_settings_does_not_matter() -> None:
    run = settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7}, noise=0.03)
    one, other = fitted(run), fitted(run[::-1])
    assert one.start_seconds == pytest.approx(other.start_seconds, rel=1e-6)
    assert shares(one) == pytest.approx(shares(other), rel=1e-6)


@effort(max_examples=25)
@given(
    start=st.floats(1e-5, 5e-3),
    nvlink=st.floats(0.2, 1.0),
    nic=st.floats(0.2, 1.0),
    leaf=st.floats(0.2, 1.0),
    seed=st.integers(0, 1000),
)
def test_whatever_the_figures_the_line_goes_through_its_settings(
    start: float, nvlink: float, nic: float, leaf: float, seed: int
) -> None:
    truth = {"nvlink": nvlink, "nic": nic, "leaf": leaf}
    found = fitted(settings(start, truth, seed))
    assert found.error < 0.01
    assert found.start_seconds == pytest.approx(start, rel=0.05, abs=1e-5)
    assert shares(found) == pytest.approx(truth, rel=0.05)


def test_groups_are_judged_by_fits_that_have_not_seen_them() -> None:
    """One placement obeys another law: left out, it is far off; in sample it is less so."""
    run = settings(0.002, {"nvlink": 0.5, "nic": 0.8, "leaf": 0.7})
    odd = [
        Setting(one.placement, one.load, one.seconds * (1.6 if one.placement == "plan" else 1), one.seconds_R)
        for one in run
    ]
    found = fitted(odd)
    assert found.left_out["placement"] > 0.05
    assert found.held_out_error == max(found.left_out.values())
    assert set(found.left_out) == {"placement", "load"}


def refused(run: Sequence[Setting]) -> str:
    with pytest.raises(BadInput) as error:
        fitted(run)
    assert str(error.value).startswith("slot dispatch")
    return str(error.value)


def test_too_few_settings_are_no_fit() -> None:
    run = settings(0.002, PRIOR)
    assert "5 settings were run, a fit needs 6" in refused(run[:5])


def test_two_placements_on_two_loads_cannot_be_judged() -> None:
    run = settings(0.002, PRIOR)
    two = [one for one in run if one.placement in PLACEMENTS[:2] and one.load in LOADS[:2]]
    assert "a fit is judged on those it has not seen" in refused(two * 2)


def test_settings_of_as_many_bytes_tell_no_start_up_from_efficiency() -> None:
    run = settings(0.002, PRIOR)
    alike = [Setting(one.placement, one.load, one.seconds, run[0].seconds_R) for one in run]
    assert "run with several numbers of tokens" in refused(alike)


def test_bytes_that_cost_nothing_are_no_line() -> None:
    """More bytes, less time."""
    run = settings(0.002, PRIOR)
    odd = [Setting(one.placement, one.load, 1 / (1 + one.seconds_R.max()), one.seconds_R) for one in run]
    assert "more bytes do not take longer" in refused(odd)


def test_seconds_that_have_nothing_to_do_with_bytes_are_no_line() -> None:
    draw = np.random.default_rng(5)
    run = settings(0.002, PRIOR)
    odd = [Setting(one.placement, one.load, draw.uniform(0.001, 0.1), one.seconds_R) for one in run]
    assert "no line goes through its settings" in refused(odd) or "do not take longer" in refused(odd)


def test_links_faster_than_they_are_said_to_be_are_another_machine() -> None:
    run = settings(0.002, {"nvlink": 0.5, "nic": 3.0, "leaf": 3.0})
    assert "this topology is not the machine that ran" in refused(run)


def test_a_setting_without_time_is_named() -> None:
    run = settings(0.002, PRIOR)
    run[2] = Setting(run[2].placement, run[2].load, 0.0, run[2].seconds_R)
    assert "plan on skew-4 took 0.0 s" in refused(run)
