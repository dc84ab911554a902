"""Load files: every format is read back equal, and what is no load file is refused in one line."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.files import Saver, model


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
        ("l.json", '{"counts": {"one": [1]}}', "the key 'one'; expected a layer id"),
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
        ("l.json", '{"counts": [[1,1,1,1]], "layer_ids": [1], "phase": "both"}', "'phase' is 'both'"),
        ("l.json", "[[1,2],[3]]", "equally long lists"),
        ("l.json", "[]", "lists 1 deep; expected lists of numbers, 2 or 3 deep"),
        ("l.json", "[[1,2", "not valid JSON"),
        ("l.yaml", "counts: [[1, 2", "not valid YAML"),
        ("l.json", "[" + "1" * 5000 + "]", "not valid JSON"),
        ("l.json", "[" * 100_000, "nested too deeply|not valid JSON"),
        ("l.yaml", "a: !!timestamp soon", "the tag .* is not accepted"),
        ("l.yaml", "a: !!int ''", "the tag .* is not accepted"),
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
