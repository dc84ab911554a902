"""The study of drift: an AR(1) process as it says, and its columns in the order they must have."""

import numpy as np
import pytest

from planner.bench import resplit
from planner.bench.frame import Instance, Peers

SMALL = Instance("2x80 -> 88 / 8 GPUs", 2, 80, 11, "hgx-h100")


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_loads_drift_by_rho(rho: float) -> None:
    """The correlation of log-loads between windows is rho, and their spread stays."""
    problem, after = resplit.drifted(Instance("60x384", 60, 384, 7, "hgx-h100:8"), rho)
    now, then = (np.log(load.total_LE.ravel()) for load in (problem.load, after))
    assert np.corrcoef(now, then)[0, 1] == pytest.approx(rho, abs=0.02)
    assert then.std() == pytest.approx(now.std(), rel=0.03)


def test_every_row_is_judged_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of the window itself are best.

    Only the re-splittable plan is sure to be joined, and passes most load on.
    """
    monkeypatch.setattr(resplit, "INSTANCE", SMALL)
    monkeypatch.setattr(resplit, "RHOS", (0.9,))
    peer = {
        "peer": lambda load_LE, slots, *_: np.tile(np.arange(slots) % load_LE.shape[1], (len(load_LE), 1))
    }
    table = resplit.run(Peers(peer), 1, None)
    assert [row["method"] for row in table.rows] == ["peer", "auto", "auto --resplittable"]
    assert len({tuple(row) for row in table.rows}) == 1
    figures = [
        {key: float(str(cell)) for key, cell in row.items() if key.endswith(("balancedness", "share"))}
        for row in table.rows
    ]
    assert all(row["valid"] for row in table.rows)
    for row in figures:
        assert (
            row["next_resplit_balancedness"]
            >= max(row["next_balancedness"], row["next_static_balancedness"]) - 1e-9
        )
    assert figures[2]["joined_layers_share"] == 1
    assert figures[2]["next_resplit_balancedness"] > figures[1]["next_resplit_balancedness"] - 0.01
