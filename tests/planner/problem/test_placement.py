"""One array, and what is derived from it."""

from typing import Any

import numpy as np
import pytest

from planner.placement import Placement


def test_what_follows_from_the_array() -> None:
    """Two layers, two GPUs of two slots."""
    placement = Placement(np.array([[0, 1, 1, 2], [2, 0, 1, 2]]), layer_ids=(3, 7), gpus=2)
    assert (placement.slots, placement.slots_per_gpu) == (4, 2)
    assert placement.gpu_P.tolist() == [0, 0, 1, 1]
    assert placement.replicas_LE(4).tolist() == [[1, 2, 1, 0], [1, 1, 2, 0]]


def test_the_array_is_copied_and_fixed() -> None:
    """Neither its maker nor its reader can change a placement; any integer dtype becomes int64."""
    mine: Any = np.array([[0, 1]], dtype=np.int32)
    placement = Placement(mine, (0,), 2)
    mine[0, 0] = 5
    assert placement.expert_LP.tolist() == [[0, 1]]
    assert placement.expert_LP.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        placement.expert_LP[0, 0] = 1


@pytest.mark.parametrize(
    "array", [np.array([0, 1]), np.array([[[0]]]), np.array([[0.5]]), np.array([[True]]), np.array([["0"]])]
)
def test_other_arrays_are_refused(array: np.ndarray) -> None:
    """Two axes, integers: anything else is a bug of its maker."""
    with pytest.raises(TypeError, match="two-dimensional integer array"):
        Placement(array, (0,), 1)
