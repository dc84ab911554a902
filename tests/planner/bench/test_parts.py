"""The study of parts: absent loads are told; no part is better than `auto` by more than half a percent."""

from pathlib import Path

import pytest

from planner.bench import parts
from planner.bench.frame import Peers
from planner.bench.traces import ABSENT

WORTH = -0.005


def test_absent_loads_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is made up."""
    monkeypatch.setattr(parts, "OLMOE", Path("nowhere.npz"))
    table = parts.run(Peers(), 1, None)
    assert table.rows == ()
    assert "not measured" in table.notes[0]


@pytest.mark.skipif(not parts.OLMOE.is_file(), reason=ABSENT)
def test_no_part_is_better_without() -> None:
    """Held out: each part's share is a number, or nothing where it changes nothing."""
    row = parts.row_of(*parts.posed("OLMoE", "lp", "prefill"), "OLMoE")
    shares = [
        float(str(share)) for name, share in row.items() if name.endswith("share") and share is not None
    ]
    assert {"no levelling_share", "no settling_share", "alone_share"} <= set(row)
    assert min(shares) > WORTH, row
