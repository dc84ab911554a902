"""The study of drift: its series, its limits, and that its figures are those of the placements."""

import numpy as np
import pytest

from planner.bench import drift
from planner.bench.frame import Peers
from planner.solvers import peaks


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three layers, four GPUs, two steps."""
    for name, value in {"LAYERS": 3, "EXPERTS": 16, "GPUS": 4, "SLOTS": 24, "STEPS": 2, "DRAWS": 2}.items():
        monkeypatch.setattr(drift, name, value)


def test_every_way_to_re_plan_keeps_its_limit() -> None:
    """Rows have the same keys, a peer that starts afresh is among them, nobody's placement is invalid, and
    keeping the plan moves nothing.
    """
    table = drift.run(
        Peers({"peer": lambda load_LE, *_: np.tile(np.arange(24) % 16, (len(load_LE), 1))}), 1, None
    )
    assert len({tuple(row) for row in table.rows}) == 1
    moved = {(row["instance"], row["method"]): float(str(row["most_moved_share"])) for row in table.rows}
    assert len(moved) == 2 * (3 + len(drift.SHARES))
    assert all(row["valid"] for row in table.rows)
    for (_, method), share in moved.items():
        if "keep" in str(method):
            assert share == 0
        for limit in drift.SHARES:
            assert f"{limit:.0%} moved" not in str(method) or share <= limit


def test_the_series_follows_its_first_draw_and_keeps_its_spread() -> None:
    """Each step is the first of what may follow the one before.

    Log-loads have a correlation of rho from step to step and a deviation of 1.
    """
    series = drift.drawn(0.9, 3, (40, 256))
    assert (series.share_TLE[1:] == series.next_TDLE[:-1, 0]).all()
    log_TLE = np.log(series.share_TLE)
    assert np.corrcoef(log_TLE[0].ravel(), log_TLE[1].ravel())[0, 1] == pytest.approx(0.9, abs=0.02)
    assert log_TLE[3].std() == pytest.approx(1.0, abs=0.05)


def test_balance_is_that_of_the_busiest_gpus() -> None:
    """Mean over busiest, both summed over layers."""
    share_LE, expert_LP = (
        np.array([[0.5, 0.25, 0.25, 0.0], [0.25] * 4]),
        np.array([[0, 1, 2, 3], [0, 1, 2, 3]]),
    )
    assert peaks(share_LE, expert_LP, 2).tolist() == [0.75, 0.5]
    assert drift._balance(share_LE, expert_LP, 2) == pytest.approx(1 / 1.25)
