"""Co-occurrence counts made into tokens: pairs as recorded, load untouched, faults named."""

from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from planner.load.cooccurrence import drawn_tokens
from tests.planner.load.dumps.files import MODEL


def pairs_of(experts_TK: np.ndarray, experts: int) -> np.ndarray:
    chosen_TE = np.zeros((len(experts_TK), experts), dtype=np.int64)
    np.put_along_axis(chosen_TE, experts_TK.astype(np.int64), 1, axis=1)
    return chosen_TE.T @ chosen_TE


def grouped_tokens(tokens: int, experts: int = 16, top_k: int = 4, seed: int = 0) -> np.ndarray:
    """Each token takes most of its experts from one of four groups."""
    random = np.random.default_rng(seed)
    liked_TE = np.repeat(np.eye(4), experts // 4, axis=1)[random.integers(0, 4, tokens)] * 2.5
    return np.argsort(-(liked_TE + random.gumbel(size=(tokens, experts))), axis=1)[:, :top_k]


def test_drawn_tokens_have_the_pairs_of_the_recorded_ones() -> None:
    """Counts of pairs correlate closely, which they do not for tokens that choose independently;
    ids are distinct within a token.
    """
    recorded = pairs_of(grouped_tokens(4000), 16)
    drawn_TK = drawn_tokens(recorded, np.diag(recorded), 4, 2000, np.random.default_rng(1))
    assert (np.diff(np.sort(drawn_TK, axis=1), axis=1) > 0).all()
    upper = np.triu_indices(16, 1)
    assert np.corrcoef(recorded[upper], pairs_of(drawn_TK, 16)[upper])[0, 1] > 0.95
    counts_E = np.bincount(drawn_TK.ravel(), minlength=16)
    assert np.abs(counts_E / counts_E.sum() - np.diag(recorded) / np.trace(recorded)).max() < 0.02


def saved(folder: Path, together: np.ndarray) -> Path:
    path = folder / "load.npz"
    np.savez(
        path,
        counts=np.array([[[6, 6, 2, 2], [5, 5, 3, 3]], [[6, 6, 2, 2], [5, 5, 3, 3]]]),
        layer_ids=[1, 2],
        together=together,
    )
    return path


def test_counts_stay_and_a_trace_is_drawn(tmp_path: Path) -> None:
    """One sequence a window; the same file gives the same tokens; a note says that they are drawn."""
    together = np.tile(np.array([[12, 10, 1, 1], [10, 12, 1, 1], [1, 1, 4, 2], [1, 1, 2, 4]]), (2, 1, 1))
    load, again = (read_load([saved(tmp_path, together)], MODEL) for _ in range(2))
    assert load.tokens_WLE.tolist() == [[[6, 6, 2, 2], [5, 5, 3, 3]], [[6, 6, 2, 2], [5, 5, 3, 3]]]
    assert load.trace is not None
    assert again.trace is not None
    assert load.trace.sequence_lengths == (1024, 1024)
    assert np.array_equal(load.trace.experts_LTK, again.trace.experts_LTK)
    assert "tokens are drawn from its co-occurrence counts" in " ".join(load.notes)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((0, 0, 1), 7, r"layer 1: experts 0 and 1 were chosen together 7 times, 1 and 0 10 times"),
        ((1, 2, 2), -1, r"layer 2: experts 2 and 2 were chosen together -1 times"),
    ],
)
def test_counts_that_cannot_be_pairs_are_refused(
    tmp_path: Path, place: tuple[int, int, int], value: int, message: str
) -> None:
    """Layer, experts and values are named."""
    together = np.tile(np.full((4, 4), 10), (2, 1, 1))
    together[place] = value
    with pytest.raises(BadInput, match=message):
        read_load([saved(tmp_path, together)], MODEL)


def test_the_wrong_shape_is_refused(tmp_path: Path) -> None:
    """Both shapes are named."""
    with pytest.raises(BadInput, match=r"shape \[2, 4, 3\]; expected \[2, 4, 4\]"):
        read_load([saved(tmp_path, np.ones((2, 4, 3), dtype=int))], MODEL)


def test_a_layer_without_pairs_leaves_the_counts_alone(tmp_path: Path) -> None:
    """No trace, and a note that names the layer."""
    together = np.zeros((2, 4, 4), dtype=int)
    together[0] = 3
    load = read_load([saved(tmp_path, together)], MODEL)
    assert load.trace is None
    assert "no experts were chosen together in layer 2" in " ".join(load.notes)
