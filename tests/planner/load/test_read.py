"""Load files: what is read back equal, what is refused in one line, and what is said in notes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from planner.base import BadInput
from planner.load import read_load, shipped_load, split_windows, uniform_load
from planner.model import ModelSpec
from tests.places import SHARED

RECORDINGS = SHARED / "data/loads"
Saver = Callable[..., Path]


def model(
    layers: int = 3, experts: int = 4, top_k: int = 2, dense: int = 1, draft: int = 0, name: str = "small"
) -> ModelSpec:
    """A model whose first `dense` layers hold no experts."""
    return ModelSpec(
        name,
        "test",
        layers,
        tuple(range(dense, layers)),
        experts,
        top_k,
        8,
        8,
        8,
        "bf16",
        "by hand",
        tuple(range(layers, layers + draft)),
    )


@pytest.fixture
def save(tmp_path: Path) -> Saver:
    """Write text, a JSON tree or arrays under a name; return the path."""

    def write(name: str, content: str | list[object] | dict[str, object] | None = None, **named: Any) -> Path:
        path = tmp_path / name
        if named:
            np.savez(path, **named)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    tokens_WLE=arrays(np.int64, (3, 2, 4), elements=st.integers(0, 2**58)),
    form=st.sampled_from(["long", "wide", "json", "yaml", "npz", "npy"]),
)
def test_every_format_reads_back_equal(tokens_WLE: npt.NDArray[np.int64], form: str, tmp_path: Path) -> None:
    """Counts up to 2^58 come back bit by bit from each format."""
    tokens_WLE[0, 0, 0] += 1  # at least one assignment
    cells = [
        (layer + 1, expert, tokens_WLE[w, layer, expert], w)
        for w in range(3)
        for layer in range(2)
        for expert in range(4)
    ]
    path = tmp_path / f"load.{ {'long': 'csv', 'wide': 'csv', 'yaml': 'yaml'}.get(form, form) }"
    if form == "long":
        path.write_text(
            "\n".join(["layer_id,expert_id,count,window", *(",".join(map(str, cell)) for cell in cells)])
        )
    elif form == "wide":
        rows = [
            f"{w},{layer + 1},{','.join(map(str, tokens_WLE[w, layer]))}"
            for w in range(3)
            for layer in range(2)
        ]
        path.write_text("\n".join(["window,layer,e0,e1,e2,e3", *rows]))
    elif form in ("json", "yaml"):
        path.write_text(json.dumps({"counts": tokens_WLE.tolist(), "layer_ids": [1, 2]}))
    elif form == "npz":
        np.savez(path, counts=tokens_WLE, layer_ids=[1, 2])
    else:
        np.save(path, tokens_WLE)
    load = read_load([path], model())
    assert np.array_equal(load.tokens_WLE, tokens_WLE)
    assert load.layer_ids == (1, 2)


def test_partial_csvs_of_two_ranks_sum(save: Saver) -> None:
    """C18 A: an expert absent from a file counts 0 there; totals are those of both ranks, and each window carries its file's name."""
    first = save(
        "rank0.csv", "layer_id,expert_id,count\n3,0,24990\n3,18,39249\n3,29,13378\n3,34,13874\n3,43,22360\n"
    )
    second = save("rank1.csv", "layer_id,expert_id,count\n3,18,33056\n3,29,14053\n3,34,14732\n3,43,20474\n")
    load = read_load([first, second], model(layers=4, experts=64, dense=3))
    assert {int(e): int(load.total_LE[0, e]) for e in np.flatnonzero(load.total_LE[0])} == {
        0: 24990,
        18: 72305,
        29: 27431,
        34: 28606,
        43: 42834,
    }
    assert load.tokens_WLE[1, 0, 0] == 0
    assert load.window_names == ("rank0", "rank1")


def test_physical_counts_without_a_map_are_refused(save: Saver) -> None:
    """C18 B: six slots of four experts are not a six-expert model; both numbers and the missing map are named."""
    with pytest.raises(BadInput, match=r"6 experts a layer, but small has 4.*physical-to-logical map"):
        read_load([save("load.json", [[10, 20, 30, 40, 5, 6]])], model(layers=1, dense=0))
    with pytest.raises(BadInput, match=r"layer 0 names expert 5; small has the experts 0\.\.3.*map"):
        read_load([save("load.csv", "layer,expert,count\n0,5,6\n")], model(layers=1, dense=0))


def test_identical_files_may_be_replicas_of_one_counter(save: Saver) -> None:
    """C18 C: they are read, and a note says what they may be."""
    paths = [save(f"rank{rank}.json", [[4, 3, 2, 1], [1, 2, 3, 4]]) for rank in range(2)]
    with pytest.raises(BadInput, match=r"identical counts.*--ranks same \(one counter\) or --ranks sum"):
        read_load(paths, model())
    same, both = (read_load(paths, model(), ranks=word) for word in ("same", "sum"))
    assert (same.windows, both.windows) == (1, 2)
    assert any("one counter, as --ranks same says; left out" in note for note in same.notes)
    paths[1] = save("rank1.json", [[4, 3, 2, 1], [1, 2, 4, 3]])
    assert not any("replicas" in note for note in read_load(paths, model()).notes)


def test_a_zero_layer_is_said_to_have_no_signal(save: Saver) -> None:
    """C03: the counts stay zero (no balance figure is made up), the shares are even, and the note names the layer."""
    load = read_load([save("load.json", [[0] * 8, [8, 7, 6, 5, 4, 3, 2, 1]])], model(experts=8))
    assert load.notes == ("layer 1: no assignments; treated as evenly loaded",)
    assert load.total_LE[0].sum() == 0
    assert load.shares_LE[0].tolist() == [1 / 8] * 8


def test_nothing_but_zeros_is_refused(save: Saver) -> None:
    """A load without one assignment answers nothing."""
    with pytest.raises(BadInput, match="every count is zero"):
        read_load([save("load.json", [[0] * 4, [0] * 4])], model())


CELL = r"load\.\w+: window 0, layer 2, expert 1: the count is "


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan; counts are finite"),
        (float("inf"), "inf; counts are finite"),
        (-(2**31), "-2147483648; counts cannot be negative .*int32"),
        (2.5, "2.5; counts are whole numbers"),
        (float(2**53), r"9007199254740992\.0; .*no longer exact"),
        (2**63, r"9\.223372036854776e\+18; .*no longer exact"),
        (2**64, "18446744073709551616; .*no longer exact"),
        (None, "None; counts are whole numbers"),
        ("7", "7; counts are whole numbers"),
    ],
)
def test_what_is_no_count_is_refused_by_its_place(save: Saver, value: object, message: str) -> None:
    """C04, C05: file, window, layer, expert and value, in JSON."""
    with pytest.raises(BadInput, match=CELL + message):
        read_load([save("load.json", [[1, 2, 3, 4], [1, value, 3, 4]])], model())


@pytest.mark.parametrize("text", ["nan", "inf", "-5", "2.5", "1e300", "99999999999999999999", "9" * 5000])
def test_what_is_no_count_is_refused_in_csv(save: Saver, text: str) -> None:
    """The same cells as text."""
    with pytest.raises(BadInput, match=r"layer 2, expert 1: the count is "):
        read_load([save("load.csv", f"layer,expert,count\n1,0,1\n2,0,1\n2,1,{text}\n")], model())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_of_whole_floats_are_accepted(save: Saver, dtype: str) -> None:
    """Some recorders save floats; whole ones in the exact range are counts."""
    assert (
        read_load([save("load.npz", counts=np.full((2, 4), 3, dtype=dtype))], model()).total_LE.tolist()
        == [[3] * 4] * 2
    )


@pytest.mark.parametrize(
    "bad",
    [
        np.float32(2**24),
        np.uint64(2**63),
        np.int32(-1),
        np.bool_(True),
        np.complex64(1),
        np.datetime64("2020-01-01"),
        np.str_("x"),
    ],
)
def test_arrays_of_other_types_or_past_their_exact_range_are_refused(save: Saver, bad: np.generic) -> None:
    """A float32 no longer tells 2^24 from 2^24 + 1, so a count of that size cannot be believed."""
    with pytest.raises(BadInput, match=r"window 0, layer 1, expert 0: the count is "):
        read_load([save("load.npz", counts=np.full((2, 4), bad))], model())


def test_counts_never_pass_through_float32(save: Saver) -> None:
    """C05: 16777216 and 16777217 stay different, and counts past int32 are kept."""
    load = read_load([save("load.json", [[16777216, 16777217, 2**31, 2**32], [1, 1, 1, 1]])], model())
    assert load.total_LE[0].tolist() == [16777216, 16777217, 2**31, 2**32]


def test_a_sum_past_int64_is_refused(save: Saver) -> None:
    """Each count fits, their sum does not."""
    with pytest.raises(BadInput, match=r"sum to .* past 2\^63"):
        read_load([save("load.json", [[2**62, 2**62, 0, 0], [1, 1, 1, 1]])], model())


def test_rows_of_all_decoder_layers_are_cut_to_the_moe_layers(save: Saver) -> None:
    """As many rows as decoder layers, the dense ones zero: the MoE rows are kept and the note says so."""
    load = read_load([save("load.json", [[0] * 4, [1, 2, 3, 4], [4, 3, 2, 1]])], model())
    assert load.layer_ids == (1, 2)
    assert load.total_LE.tolist() == [[1, 2, 3, 4], [4, 3, 2, 1]]
    assert any("layer 0 of small hold no experts" in note for note in load.notes)


def test_load_in_a_dense_layer_is_refused(save: Saver) -> None:
    """C12: ids that count MoE layers only would shift every row."""
    with pytest.raises(BadInput, match=r"layer 0 has assignments, but small has no experts there"):
        read_load([save("load.json", {"0": [1, 2, 3, 4], "1": [4, 3, 2, 1]})], model())


def test_another_number_of_rows_names_both_counts(save: Saver) -> None:
    """Five rows fit neither two MoE layers nor three decoder layers."""
    with pytest.raises(
        BadInput, match=r"5 layer rows, but small has 2 MoE layers \(3 decoder layers\).*layer_ids"
    ):
        read_load([save("load.json", [[1] * 4] * 5)], model())


def test_rows_may_come_in_any_order(save: Saver) -> None:
    """A mapping from layer id to counts is sorted by id."""
    assert read_load(
        [save("load.json", {"2": [1, 1, 1, 5], "1": [8, 0, 0, 0]})], model()
    ).total_LE.tolist() == [[8, 0, 0, 0], [1, 1, 1, 5]]


def test_layers_that_were_not_measured_take_the_mean_share(save: Saver) -> None:
    """Mean of the shares, at the mean total; totals are kept exactly, and rows and notes say which layers."""
    load = read_load(
        [save("load.json", {"counts": [[8, 0, 0, 0], [0, 4, 0, 0]], "layer_ids": [1, 2]})],
        model(layers=5, draft=1),
    )
    assert load.layer_ids == (1, 2, 3, 4, 5)
    assert load.total_LE[2:].tolist() == [[3, 3, 0, 0]] * 3
    assert load.unmeasured_layer_ids == (3, 4, 5)
    assert any(note.startswith("layers 3-4: not measured") for note in load.notes)
    assert any(note.startswith("no load for layer 5, a draft layer") for note in load.notes)


def test_silent_layers_are_no_part_of_the_mean(save: Saver) -> None:
    """A zero row says nothing about others."""
    load = read_load([save("load.json", {"1": [0, 0, 0, 0], "2": [6, 0, 0, 0]})], model(layers=4))
    assert load.total_LE[2].tolist() == [6, 0, 0, 0]


def test_a_silent_window_fills_nothing(save: Saver) -> None:
    """No assignment in a window: none for the layers that were not measured."""
    load = read_load(
        [save("load.json", {"counts": [[[4, 0, 0, 0]], [[0, 0, 0, 0]]], "layer_ids": [1]})], model()
    )
    assert load.tokens_WLE[:, 1].tolist() == [[4, 0, 0, 0], [0, 0, 0, 0]]


def test_a_measured_draft_layer_is_kept(save: Saver) -> None:
    """C11: a row for the draft layer is load like any other."""
    load = read_load(
        [save("load.json", {str(layer): [layer, 1, 1, 1] for layer in (1, 2, 3)})], model(draft=1)
    )
    assert load.unmeasured_layer_ids == ()
    assert load.total_LE[2].tolist() == [3, 1, 1, 1]


def test_a_row_whose_total_is_off_is_noted(save: Saver) -> None:
    """C26: padding, warm-up or partial ranks; 1 % is the limit."""
    off = read_load(
        [save("off.json", [[100, 100, 0, 0], [100, 100, 0, 0], [100, 103, 0, 0]])], model(layers=4)
    )
    assert any(
        note.startswith("layer 3: totals differ from the median over layers by up to 1.5%")
        for note in off.notes
    )
    near = read_load(
        [save("near.json", [[100, 100, 0, 0], [100, 100, 0, 0], [100, 102, 0, 0]])], model(layers=4)
    )
    assert near.notes == ()


def test_windows_of_several_files_follow_each_other(save: Saver) -> None:
    """In the order given, with names that carry the file; different units and phases are told."""
    first = save(
        "a.json",
        {
            "counts": [[[1] * 4] * 2, [[2] * 4] * 2],
            "windows": ["x", "y"],
            "window_unit": "minute",
            "phase": "decode",
        },
    )
    load = read_load([first, save("b.npz", counts=np.full((2, 4), 3))], model())
    assert load.tokens_WLE[:, 0, 0].tolist() == [1, 2, 3]
    assert load.window_names == ("a:x", "a:y", "b")
    assert (load.window_unit, load.phase) == ("window", "unknown")
    assert {note for note in load.notes if "different" in note} == {
        "the files have different window units (minute, window)",
        "the files have different phases (decode, unknown)",
    }


def test_files_of_different_layers_are_refused(save: Saver) -> None:
    """Windows of other layers cannot be stacked."""
    with pytest.raises(BadInput, match=r"b\.json has layers 2, .*a\.json has 1;"):
        read_load([save("a.json", {"1": [1] * 4}), save("b.json", {"2": [1] * 4})], model())


def trace_ids(prefix: int, sequences: int = 3, body: int = 6) -> tuple[list[list[list[int]]], list[int]]:
    """One layer, two of 30 experts a token: the same first `prefix` tokens in each sequence, then different ones."""
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
    """Published DeepSeek-V2-Lite traces open with a prompt of 17 and 11 tokens, though routing is not bit-exact between sequences."""
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
        ([[0, 1]], "axes"),
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


def test_traces_and_counts_together_are_counts(save: Saver) -> None:
    """No trace remains that covers a part of the windows only, and the note says so."""
    load = read_load(
        [save("t.json", {"trace": [[[0, 1], [2, 3]]]}), save("c.json", [[2, 1, 0, 1]])], model(layers=2)
    )
    assert load.trace is None
    assert load.windows == 2
    assert any("used as counts only" in note for note in load.notes)


def test_a_lone_array_needs_no_known_name(save: Saver) -> None:
    """Its shape tells counts from a trace."""
    assert read_load([save("a.npz", whatever=np.ones((2, 4), dtype=int))], model()).trace is None
    assert read_load([save("b.npz", whatever=np.tile([0, 1], (2, 5, 1)))], model()).trace is not None


def test_unknown_arrays_are_listed(save: Saver) -> None:
    """Names and shapes that were found, and the names that were expected."""
    with pytest.raises(BadInput, match=r"holds a \[2, 5\], b \[3\]; expected 'counts' \[layer, 4\]"):
        read_load([save("load.npz", a=np.ones((2, 5)), b=np.ones(3))], model())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.csv", "layer,expert,count\n1,0,5\n1,0,6\n", "layer 1, expert 0 has more than one row"),
        ("l.csv", "layer,expert,count\n1,x,5\n", "data row 1: expert is 'x'"),
        ("l.csv", "layer,expert,count\n1,0,many\n", "'many' is no number"),
        ("l.csv", "layer,expert,count,rank\n1,0,5,0\n", "column 'expert' is not known"),
        ("l.csv", "expert,count\n0,5\n", "no column 'layer_id'"),
        ("l.csv", "layer,e0,e1,e3\n1,0,5,6\n", r"numbered 0\.\.2"),
        ("l.csv", "layer,expert,count\n99,0,5\n", "layer 99 is not one of small, whose layers are 0-2"),
        ("l.json", '{"count": [[1]]}', "unknown key 'count'"),
        ("l.json", '{"counts": {"one": [1]}}', "must be layer ids"),
        ("l.json", '{"phase": "decode"}', "neither 'counts' nor 'trace'"),
        (
            "l.json",
            '{"counts": [[1,1,1,1]], "layer_ids": [1, 2]}',
            "1 layer rows need as many distinct layer ids; got 2",
        ),
        (
            "l.json",
            '{"counts": [[1,1,1,1]], "layer_ids": [1], "windows": ["a", "b"]}',
            "1 windows need as many names",
        ),
        ("l.json", '{"counts": [[1,1,1,1]], "layer_ids": [1], "phase": "both"}', "phase 'both'"),
        ("l.json", "[[1,2],[3]]", "equally long lists"),
        ("l.json", "[]", r"axes .* got shape \[0\]"),
        ("l.json", "[[1,2", "not valid JSON"),
        ("l.yaml", "counts: [[1, 2", "not valid YAML"),
        ("l.json", "[" + "1" * 5000 + "]", "not valid JSON"),
        ("l.json", "[" * 100_000, "nested too deeply|not valid JSON"),
        ("l.yaml", "a: !!timestamp soon", "not readable YAML"),
        ("l.yaml", "a: !!int ''", "not readable YAML"),
        ("l.yaml", "a: !!python/object/apply:os.system [id]", "not valid YAML"),
        ("l.yaml", "a: &a [1]\ncounts: [*a]", "aliases"),
        ("l.xlsx", "x", r"ends in \.csv, \.json, \.yaml, \.npz or \.npy, not '\.xlsx'"),
        ("l.npz", "PK", "not a readable NumPy file"),
        ("l.csv", "", "empty"),
    ],
)
def test_bad_files_get_one_line(save: Saver, name: str, content: str, message: str) -> None:
    """What is wrong and where, on one line that begins with the file."""
    path = save(name, content)
    with pytest.raises(BadInput, match=message) as caught:
        read_load([path], model())
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """And so is no file at all."""
    (tmp_path / "load.json").mkdir()
    for paths, message in [
        ([tmp_path / "load.json"], "directory"),
        ([tmp_path / "none.csv"], "cannot be read"),
        ([], "no load file"),
    ]:
        with pytest.raises(BadInput, match=message):
            read_load(paths, model())


def test_a_load_too_large_to_hold_is_refused(save: Saver) -> None:
    """A short file can ask for a huge array: 30,000 windows of 60 layers and 256 experts."""
    rows = "\n".join(f"{window % 60},0,1,{window}" for window in range(30_000))
    with pytest.raises(BadInput, match="record fewer windows"):
        read_load(
            [save("load.csv", f"layer,expert,count,window\n{rows}\n")], model(layers=60, experts=256, dense=0)
        )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    content=st.binary(min_size=1, max_size=200),
    suffix=st.sampled_from(["csv", "json", "yaml", "npz", "npy", "bin"]),
)
def test_random_bytes_are_bad_input_and_nothing_else(content: bytes, suffix: str, tmp_path: Path) -> None:
    """Whatever the suffix says."""
    path = tmp_path / f"load.{suffix}"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        read_load([path], model())


def outcome(path: Path) -> str:
    """'a load' that fits the model, or the message of the refusal; any other exception is a failure."""
    try:
        load = read_load([path], model())
    except BadInput as refusal:
        return str(refusal)
    return "a load" if load.experts == 4 and load.layer_ids == (1, 2) else "another load"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data(), packed=st.booleans())
def test_damaged_archives_are_read_or_refused(data: st.DataObject, packed: bool, tmp_path: Path) -> None:
    """An .npz cut short or with flipped bytes raises BadInput or still holds a load; it never raises anything else."""
    path = tmp_path / "load.npz"
    (np.savez_compressed if packed else np.savez)(
        path, counts=np.arange(8).reshape(2, 4), layer_ids=np.array([1, 2])
    )
    content = bytearray(path.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[position] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    assert outcome(path) == "a load" or "load.npz" in outcome(path)


@pytest.mark.parametrize("packed", [True, False])
def test_no_flipped_byte_escapes(packed: bool, tmp_path: Path) -> None:
    """Each byte of an .npz turned over in turn: damaged headers, streams and directories all end in BadInput or in a load."""
    path = tmp_path / "load.npz"
    (np.savez_compressed if packed else np.savez)(path, counts=np.arange(8).reshape(2, 4) ** 5)
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :])
        assert outcome(path) == "a load" or "load.npz" in outcome(path)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["counts", "trace", "layer_ids", "windows", "1", "2"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(tree=json_trees)
def test_any_json_is_read_or_refused(tree: object, tmp_path: Path) -> None:
    """A tree of any shape gives a load or BadInput."""
    path = tmp_path / "load.json"
    path.write_text(json.dumps(tree))
    assert outcome(path) == "a load" or "load.json" in outcome(path)


def test_the_shipped_load_of_mixtral() -> None:
    """The published figures: five domains, equal totals, three measured layers; papers and code are held out."""
    load = shipped_load(model(layers=32, experts=8, dense=0, name="mistralai/Mixtral-8x7B-v0.1"))
    assert load is not None
    assert load.window_unit == "domain"
    assert "OLMoE" in load.source
    assert load.tokens_WLE[:, [0, 7, 15]].sum(axis=2).tolist() == [[417_792] * 3] * 5
    assert load.tokens_WLE[0, 0].tolist() == [56947, 49733, 50426, 49453, 52127, 57956, 42632, 58518]
    assert len(load.unmeasured_layer_ids) == 29
    assert "only layers 0, 7, 15 are measured" in load.notes[0]
    fitted, held_out = split_windows(load)
    assert held_out is not None
    assert (fitted.window_names, held_out.window_names) == (("c4", "wikipedia", "book"), ("arxiv", "github"))


def test_the_shipped_figures_are_the_published_ones() -> None:
    """Every count against the published file."""
    path = RECORDINGS / "mixtral-8x7b_ai2_counts.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is third-party data and not here")
    load = shipped_load(model(layers=32, experts=8, dense=0, name="mixtral-8x7b"))
    assert load is not None
    with np.load(path) as published:
        for window, domain in enumerate(load.window_names):
            assert np.array_equal(load.tokens_WLE[window, [0, 7, 15]], published[f"expert_counts__{domain}"])


@pytest.mark.parametrize("name", ["mixtral-8x22b", "mixtral", "../loads/mixtral-8x7b-instruct", ""])
def test_no_other_model_gets_the_shipped_load(name: str) -> None:
    """Figures of one model say nothing about another."""
    assert shipped_load(model(name=name)) is None


def test_the_even_load_is_labelled_as_assumed() -> None:
    """Nobody can take it for a measurement."""
    load = uniform_load(model(draft=1))
    assert load.source == "assumed"
    assert load.unmeasured_layer_ids == load.layer_ids == (1, 2, 3)
    assert load.shares_LE.tolist() == [[0.25] * 4] * 3
    assert load.notes == ("no load given: every expert assumed equally loaded",)


def test_several_files_are_several_domains(save: Saver, tmp_path: Path) -> None:
    """Named by their files; by their whole paths where two share a name; one file is a series, unless it says that its windows are domains."""
    chat, code = save("chat.json", [[[1] * 4] * 2] * 3), save("code.json", [[[2] * 4] * 2])
    assert read_load([chat, code], model()).domains == ("chat", "chat", "chat", "code")
    assert read_load([chat], model()).domains == ()
    (tmp_path / "other").mkdir()
    twin = save("other/chat.json", [[[3] * 4] * 2])
    assert read_load([chat, twin], model()).domain_names == (str(chat), str(twin))
    said = save(
        "said.json",
        {"counts": [[[1] * 4] * 2, [[2] * 4] * 2], "windows": ["law", "code"], "window_unit": "domain"},
    )
    assert read_load([said], model()).domains == ("law", "code")
