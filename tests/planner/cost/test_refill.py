"""Rows with holes made whole again: everything has a slot, and no more changes than has to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.refill import EMPTY, missing_L, refilled
from planner.problem import row_violations
from tests.planner.small import random_row


@given(
    gpus=st.integers(1, 5),
    experts=st.integers(1, 6),
    empty=st.sets(st.integers(0, 4)),
    seed=st.integers(0, 999),
)
def test_every_expert_has_a_slot_and_as_little_as_can_be_changes(
    gpus: int, experts: int, empty: set[int], seed: int
) -> None:
    """Some GPUs of a random row are new, others are gone: the row is valid, and empty slots are filled.

    Of the full ones as many change as experts have no slot elsewhere.
    """
    draw = np.random.default_rng(seed)
    slots = int(draw.integers(-(-experts // gpus), experts + 1))
    whole_GS = random_row(draw, experts, 2 * gpus, slots).reshape(2 * gpus, slots)
    row_GS = whole_GS[:gpus].copy()  # the other half of the machine is lost
    row_GS[[gpu for gpu in empty if gpu < gpus]] = EMPTY
    share_E = draw.dirichlet(np.ones(experts))
    found_GS = refilled(row_GS.reshape(1, -1), share_E[None], gpus)[0].reshape(gpus, slots)
    assert list(row_violations(found_GS.reshape(1, -1), (0,), experts, gpus)) == []
    full_GS = row_GS != EMPTY
    missing = int(missing_L(row_GS.reshape(1, -1), experts)[0])
    changed = int((found_GS != row_GS)[full_GS].sum())
    assert changed == max(missing - int((~full_GS).sum()), 0)


def test_by_hand() -> None:
    """Expert 2 is lost, 3 GPUs of two slots are left: of 0 (twice, 0.5) and 1 (three times, 0.3) the coldest
    copy goes, on the busier GPU of those that hold it.
    """
    row = np.array([[0, 1, 0, 1, 1, 3]])
    found = refilled(row, np.array([[0.5, 0.3, 0.15, 0.05]]), 3)
    assert found.tolist() == [[0, 2, 0, 1, 1, 3]]
