"""Traces: windows by sequence, the prompt that all share, ids that cannot be believed."""

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.places import SHARED
from tests.planner.load.files import Saver, model

RECORDINGS = SHARED / "data/loads"


def trace_ids(prefix: int, sequences: int = 3, body: int = 6) -> tuple[list[list[list[int]]], list[int]]:
    """One layer, two of 30 experts a token: the same first `prefix` tokens in each sequence, then
    different ones.
    """
    shared = [[token, 29] for token in range(prefix)]
    own = [[[10 + (token + 3 * sequence) % 15, 28] for token in range(body)] for sequence in range(sequences)]
    return [[pair for tail in own for pair in shared + tail]], [prefix + body] * sequences


def test_a_trace_gives_one_window_a_sequence(save: Saver) -> None:
    """Counts of each sequence, and the trace itself, with its tokens in order."""
    ids, lengths = trace_ids(prefix=0)
    load = read_load(
        [save("t.npz", topk_ids=np.array(ids, dtype=np.uint8), seq_lens=lengths)], model(layers=2, experts=30)
    )
    assert load.trace is not None
    assert (load.windows, load.window_unit) == (3, "sequence")
    assert load.tokens_WLE.sum(axis=2).tolist() == [[12]] * 3
    assert load.trace.experts_LTK.tolist() == ids
    assert load.tokens_WLE[1, 0].tolist() == np.bincount(np.ravel(ids[0][6:12]), minlength=30).tolist()


@pytest.mark.parametrize(("prefix", "kept"), [(3, 9), (4, 6), (5, 6)])
def test_a_common_prompt_is_dropped(save: Saver, prefix: int, kept: int) -> None:
    """From four tokens on; fewer may be alike by chance."""
    ids, lengths = trace_ids(prefix)
    load = read_load(
        [save("t.json", {"trace": ids, "sequence_lengths": lengths})], model(layers=2, experts=30)
    )
    assert load.trace is not None
    assert load.trace.sequence_lengths == (kept,) * 3
    assert any(f"first {prefix} tokens of all 3 sequences" in note for note in load.notes) == (prefix >= 4)


def test_equal_sequences_are_no_prompt(save: Saver) -> None:
    """Where one sequence would vanish nothing is dropped, and that is said."""
    ids, lengths = trace_ids(prefix=5, body=0)
    load = read_load(
        [save("t.json", {"trace": ids, "sequence_lengths": lengths})], model(layers=2, experts=30)
    )
    assert load.trace is not None
    assert load.trace.sequence_lengths == (5, 5, 5)
    assert any("nothing dropped" in note for note in load.notes)


@pytest.mark.parametrize(("domain", "prefix"), [("intent", 17), ("law", 11)])
def test_the_prompts_of_recorded_traces_are_found(domain: str, prefix: int) -> None:
    """Published DeepSeek-V2-Lite traces open with a prompt of 17 and 11 tokens, though routing is not
    bit-exact between sequences.
    """
    path = RECORDINGS / f"deepseek-v2-lite_{domain}_trace.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is third-party data and not here")
    load = read_load([path], model(layers=27, experts=64, top_k=6))
    assert f"the first {prefix} tokens of all {load.windows} sequences" in load.notes[0]


def test_an_unrecorded_layer_has_no_ids(save: Saver) -> None:
    """Its counts are the mean, its row of the trace is -1: nobody can take it for routing."""
    ids, lengths = trace_ids(prefix=0)
    load = read_load(
        [save("t.json", {"trace": ids, "sequence_lengths": lengths, "layer_ids": [1]})],
        model(layers=2, experts=30, draft=1),
    )
    assert load.trace is not None
    assert load.trace.recorded_L.tolist() == [True, False]
    assert np.array_equal(load.total_LE[0], load.total_LE[1])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[[0, 1], [2, 2]]], "layer 1, token 1 chooses expert 2 twice"),
        ([[[0, 1], [2, 4]]], "layer 1, token 1 has the expert id 4"),
        ([[[0, 1], [2, -1]]], "layer 1, token 1 has the expert id -1"),
        ([[[0, 1, 2]]], "3 expert ids a token, but small chooses 2"),
        ([[[0.0, 1.0]]], "whole expert ids"),
        ([[0, 1]], "lists 2 deep; expected lists of numbers, 3 deep"),
    ],
)
def test_a_trace_that_cannot_be_believed_is_refused(save: Saver, ids: list[object], message: str) -> None:
    """Ids in range, distinct in a token, top_k of them; the position is named."""
    with pytest.raises(BadInput, match=message):
        read_load([save("t.json", {"trace": ids})], model(layers=2))


def test_sequence_lengths_have_to_add_up(save: Saver) -> None:
    """A trace is split by sequence, so its sequences must be known."""
    with pytest.raises(BadInput, match=r"sum to 3, but the trace holds 2 tokens"):
        read_load(
            [save("t.json", {"trace": [[[0, 1], [2, 3]]], "sequence_lengths": [1, 2]})], model(layers=2)
        )
