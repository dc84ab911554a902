"""When another plan pays: gain over the horizon against the swap, and promises as far as they were kept."""

import numpy as np
import pytest

from planner.watching.ledger import REFUSED, TAKEN, Swap
from planner.watching.verdict import Verdict, trust

ROW = np.zeros((1, 1), dtype=np.int32)


def verdict(saved: float = 1e-3, swap: float = 10.0, steps: float = 1e5, believed: float = 1.0) -> Verdict:
    return Verdict(0.02, saved, swap, steps, believed, least_gain=0.01)


@pytest.mark.parametrize(
    ("found", "pays"),
    [
        (verdict(), True),
        (verdict(saved=1e-4), False),  # half a percent of a step, however cheap the swap
        (verdict(swap=60.0), False),  # 100 s saved, and a swap has to be paid twice
        (verdict(steps=1e4), False),
        (verdict(believed=0.1), False),
        (verdict(saved=-1e-3), False),
    ],
)
def test_a_plan_pays_where_it_saves_twice_what_the_swap_takes(found: Verdict, pays: bool) -> None:
    assert found.pays is pays
    assert found.text().startswith("re-planning pays") is pays


def swap(promised: float, kept: float, after: int = 10, state: str = TAKEN) -> Swap:
    return Swap(after, "p", "m", promised, ROW, state, kept)


@pytest.mark.parametrize(
    ("swaps", "share"),
    [
        ([], 1.0),
        ([swap(1.0, 1.0)], 1.0),
        ([swap(1.0, 5.0)], 1.0),  # more than promised is no credit
        ([swap(1.0, -1.0)], 0.0),
        ([swap(1.0, 0.0)], 0.5),
        ([swap(1.0, -1.0, after=3)], 1.0),  # before the oldest window: forgotten
        ([swap(1.0, -1.0, state=REFUSED)], 1.0),
        ([swap(1.0, -1.0), swap(1.0, 1.0)], pytest.approx(1 / 3)),
    ],
)
def test_a_promise_is_believed_as_far_as_earlier_ones_were_kept(swaps: list[Swap], share: float) -> None:
    assert trust(swaps, oldest=5, promised=1.0) == share
