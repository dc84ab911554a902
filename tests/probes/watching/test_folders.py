"""Folders that a server writes its load to: new windows in order, and files that cannot be believed."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from planner.base import BadInput
from planner.load import Heard, Source
from planner.watching.database import Database
from planner.watching.store import Store
from probes.watching.place import Place
from probes.watching.registry import find_source
from tests.planner.engines.examples import TINY
from tests.planner.watching.watched import LAYERS, counts


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Database(tmp_path / "w.db"), 100, TINY.experts)


def write(folder: Path, number: int, values: npt.NDArray[np.int64], **more: object) -> Path:
    """A window as the plugin writes it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"window-moe-{number:020d}-000000.npz"
    named = {"layer_ids": LAYERS, "map_sha256": "abc"} | more
    arrays: dict[str, Any] = {key: np.asarray(value) for key, value in named.items()}
    np.savez(path, counts=values, **arrays)
    return path


def hear(source: Source, store: Store) -> tuple[int, list[str]]:
    """(windows that came, lines)."""
    news: list[Heard] = []
    for heard in source.poll(store):
        store.add(heard)
        news.append(heard)
    return sum(len(heard.windows) for heard in news), [line for heard in news for line in heard.said]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "load_windows"


@pytest.fixture
def source(folder: Path) -> Source:
    return find_source(None, "vllm", Place(folder=folder)).source(Place(folder=folder), TINY)


def test_windows_are_heard_once_and_in_order(folder: Path, source: Source, store: Store) -> None:
    """With the map that they were served by; draft layers' windows are not ours."""
    for number in (3, 1, 2):
        write(folder, number, counts(number))
    (folder / "window-draft-00000000000000000001-000000.npz").write_bytes(b"another kind")
    assert [hear(source, store), hear(source, store)] == [(3, []), (0, [])]
    write(folder, 4, counts(4))
    assert hear(source, store) == (1, [])
    tokens_WLE, _, maps = store.windows()
    assert (tokens_WLE == np.array([counts(number) for number in (1, 2, 3, 4)])).all()
    assert set(maps) == {"abc"}


def test_a_window_from_before_the_clock_went_back_is_heard_all_the_same(
    folder: Path, source: Source, store: Store
) -> None:
    write(folder, 1000, counts(1))
    hear(source, store)
    write(folder, 5, counts(2))
    assert hear(source, store) == (1, [])
    assert (store.windows()[0][-1] == counts(2)).all()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


@pytest.mark.parametrize(
    ("values", "more", "spoil"),
    [
        (counts(1), {}, cut),
        (counts(1), {}, lambda path: path.write_bytes(b"")),
        (counts(1), {}, lambda path: path.write_bytes(b"\0" * 1000)),
        (counts(1)[:, :32], {}, None),
        (counts(1), {"layer_ids": (3, 4)}, None),
        (counts(1), {"layer_ids": (0, 4, 5)}, None),
        (counts(1), {"layer_ids": (3.0, 4.0, 5.0)}, None),
        (-counts(1), {}, None),
        (counts(1) * 0.5, {}, None),
        (np.where(np.arange(64) == 3, 1_000_000, counts(1)), {}, None),  # one expert has nearly all
        (counts(1)[None], {}, None),
        (np.array(["text"]), {}, None),
    ],
)
def test_a_file_that_is_no_window_is_one_line(
    values: npt.NDArray[np.int64], more: dict[str, object], spoil: object, folder: Path, source: Source,
    store: Store,
) -> None:  # fmt: skip
    """Said once, with its name; others are heard; mended, it is heard too."""
    write(folder, 2, counts(2))
    path = write(folder, 1, values, **more)
    if callable(spoil):
        spoil(path)
    heard, (line,) = hear(source, store)
    assert (heard, path.name in line, "\n" in line, "left out" in line) == (1, True, False, True)
    assert hear(source, store) == (0, [])
    write(folder, 1, counts(1))
    assert hear(source, store) == (1, [])


def test_an_idle_window_is_none(folder: Path, source: Source, store: Store) -> None:
    write(folder, 1, np.zeros((3, 64), dtype=np.int64))
    assert hear(source, store) == (0, [])


def test_a_folder_that_is_not_there_yet(source: Source, store: Store) -> None:
    with pytest.raises(BadInput, match="no folder or file is there"):
        hear(source, store)


def test_any_dump_that_moeplan_reads(folder: Path, store: Store) -> None:
    """Load files, each a recording; long ones in a few windows; another file in between is a line."""
    source = find_source("dumps", None, Place(folder=folder)).source(Place(folder=folder), TINY)
    folder.mkdir()
    rows = [f"{layer},{expert},{expert + 9}" for layer in LAYERS for expert in range(64)]
    (folder / "a.csv").write_text("\n".join(["layer_id,expert_id,count", *rows]))
    np.save(folder / "b.npy", np.array([counts(1, draw) for draw in range(40)]))
    (folder / "c.json").write_text('{"half": ')
    heard, (line,) = hear(source, store)
    assert (heard, "c.json" in line) == (5, True)
    assert hear(source, store) == (0, [])
    assert store.windows()[0][0, 0].tolist() == [expert + 9 for expert in range(64)]
    assert store.windows()[0][1:].sum() == sum(counts(1, draw).sum() for draw in range(40))


def test_a_file_that_is_written_anew_each_time(tmp_path: Path, store: Store) -> None:
    """It is heard whenever it has changed."""
    path = tmp_path / "load.npy"
    source = find_source("dumps", None, Place(folder=path)).source(Place(folder=path), TINY)
    for load in (1, 2):
        np.save(path, counts(load))
        assert hear(source, store) == (1, [])
        assert hear(source, store) == (0, [])
    assert (store.windows()[0] == np.array([counts(1), counts(2)])).all()


def test_what_tells_the_load_follows_from_the_engine_and_what_was_given() -> None:
    """A plan for an engine without a source takes any dumps; a name that is none is told which are."""
    here = Place(folder=Path("x"))
    assert [find_source(None, engine, here).NAME for engine in ("vllm", "trtllm", None)] == [
        "vllm", "dumps", "dumps",
    ]  # fmt: skip
    with pytest.raises(BadInput, match=r"known are .*vllm"):
        find_source("vlm", None, here)
    with pytest.raises(BadInput, match="--folder DIR or --server URL"):
        find_source(None, "vllm", Place())
