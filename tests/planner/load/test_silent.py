"""Loads that could be counted as something else: each is refused, or its one doubt is said."""

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import read_load
from tests.planner.load.files import Saver, model

WIDE = "layer,e0,e1,e2,e3\n1,9,1,1,1\n2,3,3,3,3\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("twice.csv", WIDE.replace("e3\n", "e3,E3\n").replace("1\n", "1,90\n"), "'E3' is there twice"),
        ("twice.csv", "layer_id,expert_id,count,count\n1,0,10,0\n", "'count' is there twice"),
        ("twice.csv", "window,layer,layer,e0,e1,e2,e3\na,1,2,1,1,1,1\n", "'layer' is there twice"),
        ("under.csv", WIDE.replace("9,", "9_0,"), "the count '9_0' is no number"),
        ("other.csv", WIDE.replace("9,", "\u0669,"), "the count '\u0669' is no number"),
        ("wide.csv", WIDE.replace("9,", "\uff19,"), "the count '\uff19' is no number"),
        ("hex.csv", WIDE.replace("9,", "0x9,"), "the count '0x9' is no number"),
        ("layer.csv", WIDE.replace("\n1,", "\n1_0,"), "layer is '1_0'"),
        ("octal.yaml", "counts: {1: [010, 1, 1, 1], 2: [3, 3, 3, 3]}", "expert 0: the count is 010"),
        ("sexagesimal.yaml", "counts: {1: [1:30, 1, 1, 1], 2: [3, 3, 3, 3]}", "the count is 1:30"),
        ("under.yaml", "counts: {1: [1_0, 1, 1, 1], 2: [3, 3, 3, 3]}", "the count is 1_0"),
        ("hex.yaml", "counts: {1: [0x10, 1, 1, 1], 2: [3, 3, 3, 3]}", "the count is 0x10"),
        ("key.yaml", "counts: {01: [1, 1, 1, 1], 2: [3, 3, 3, 3]}", "the key '01'; expected a layer id"),
        ("key.json", '{"\u0661": [1, 1, 1, 1]}', "unknown key"),
        ("half.json", '{"counts": [[1,1,1,1],[1,1,1,1]], "source": "\\ud800"}', "holds half a character"),
        ("giant.json", '{"counts": [[1' + "0" * 400 + ",1,1,1],[1,1,1,1]]}", "the count is 1000"),
    ],
)
def test_what_other_readers_count_differently_is_refused(
    name: str, text: str, words: str, save: Saver
) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        read_load([save(name, text)], model())
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("change", [b"\x00", b"\x01\x02\x03\x04\x05\x06\x07\x08", None])
@pytest.mark.parametrize("archive", [False, True])
def test_an_array_longer_or_shorter_than_its_header_is_refused(
    change: bytes | None, archive: bool, tmp_path: Path
) -> None:
    """A byte inserted or lost shifts every count, and most of them look like counts."""
    out = io.BytesIO()
    np.save(out, np.full((2, 4), 5, dtype=np.int64))
    content = out.getvalue()
    damaged = content[:-1] if change is None else content[:140] + change + content[140:]
    path = tmp_path / ("load.npz" if archive else "load.npy")
    path.write_bytes(_zipped({"counts": damaged}) if archive else damaged)
    with pytest.raises(BadInput, match="bytes follow a header that promises 64"):
        read_load([path], model())


def test_an_archive_with_an_array_twice_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    np.save(out, np.full((2, 4), 5))
    with pytest.warns(UserWarning, match="Duplicate"):
        content = _zipped({"counts": out.getvalue()}, {"counts": out.getvalue()})
    (tmp_path / "load.npz").write_bytes(content)
    with pytest.raises(BadInput, match="holds the array 'counts' twice"):
        read_load([tmp_path / "load.npz"], model())


def test_a_text_that_is_no_text_says_nothing(tmp_path: Path) -> None:
    """Half a character, which nobody can print."""
    np.savez(tmp_path / "load.npz", counts=np.full((2, 4), 5), source=np.array("\ud800"))
    with pytest.raises(BadInput, match="'source' is not readable text"):
        read_load([tmp_path / "load.npz"], model())


def test_data_in_one_layer_of_many_is_one_warning(save: Saver) -> None:
    """Not a note for each of the others."""
    counts = [[0, 0, 0, 0] for _ in range(43)]
    counts[7] = [5, 3, 2, 2]
    load = read_load([save("dump.json", {"counts": counts})], model(layers=43, dense=0))
    silent = [note for note in load.notes if "no assignments" in note]
    said = f"WARNING: {load.source}: 42 of 43 layers have no assignments (layers 0-6, 8-42): a part of"
    assert len(silent) == 1
    assert silent[0].startswith(said)


def test_a_wide_table_takes_little_more_than_its_counts(tmp_path: Path) -> None:
    """Not fifty bytes for each byte of text: 1,000 columns, 400 rows of 3 bytes a cell."""
    experts, rows = 1000, 400
    header = "window,layer," + ",".join(f"e{expert}" for expert in range(experts))
    lines = (f"{row},0," + ",".join(["10"] * experts) for row in range(rows))
    path = tmp_path / "load.csv"
    path.write_text("\n".join([header, *lines]))
    tracemalloc.start()
    try:
        read_load([path], model(layers=1, experts=experts, dense=0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 8 * experts * rows


@pytest.mark.parametrize("text", ["[" + "[]," * 6_000_000 + "[]]", '{"a": [' + "1," * 11_000_000 + "1]}"])
def test_json_that_would_fill_the_memory_is_refused_before_it_is_built(text: str, tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="bytes of memory, more than"):
        read_load([path], model())


def _zipped(*parts: dict[str, bytes]) -> bytes:
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part in parts:
            for name, content in part.items():
                archive.writestr(f"{name}.npy", content)
    return out.getvalue()
