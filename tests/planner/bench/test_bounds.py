"""The study of the bounds: one row for each rule, transport and method, no gap below none.

And the same figures twice.
"""

import pytest

from planner.bench import bounds
from planner.bench.frame import Instance, Peers
from planner.problem import TRANSPORTS


def test_no_row_is_below_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules, four transports, three tiny questions each and a small instance; `remote` is tried where
    near replicas are preferred.
    """
    monkeypatch.setattr(bounds, "RULES", ("even", "nearest"))
    monkeypatch.setattr(bounds, "QUESTIONS", 3)
    monkeypatch.setattr(bounds, "LARGE", Instance("1x16 -> 20 / 4 GPUs", 1, 16, 5, "hgx-h100:2x2", top_k=2))
    first, second = (bounds.run(Peers(), 1, None) for _ in range(2))
    assert first.rows == second.rows
    gaps = [(row["gap_share"], row["worst_gap_share"]) for row in first.rows]
    assert all(-1e-9 <= gap <= worst + 1e-12 for gap, worst in gaps)  # type: ignore[operator]
    assert [(row["rule"], row["transport"]) for row in first.rows if row["method"] == "remote"] == [
        ("nearest", transport) for transport in TRANSPORTS
    ]
    assert len({tuple(row) for row in first.rows}) == 1
    assert len(first.rows) == 2 * 4 * 2 + 4
