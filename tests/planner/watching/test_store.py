"""The rolling window on disk: whole pieces of news, bounded, and refused where it is another's."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import Heard, Window
from planner.watching.database import Database
from planner.watching.ledger import TAKEN, Ledger, Swap
from planner.watching.store import Store
from tests.planner.watching.watched import LAYERS, counts

EXPERTS = 64


def opened(path: Path, keep: int = 4) -> tuple[Database, Store]:
    database = Database(path)
    return database, Store(database, keep, EXPERTS)


def news(load: int, key: str = "", served: str = "") -> Heard:
    return Heard((Window(counts(load), LAYERS, served),), (key,) if key else ())


def add_many(store: Store, end: int) -> None:
    for load in range(1, end):
        store.add(news(load, str(load)))


def test_a_restart_loses_nothing(tmp_path: Path) -> None:
    """Windows with their maps, what was told, counters, swaps."""
    database, store = opened(tmp_path / "w.db")
    store.add(news(1, "a", "digest"))
    store.add(Heard(counters={"rank": counts(2)}))
    Ledger(database).ask(Swap(1, "p", "m", 0.5, np.arange(6, dtype=np.int32).reshape(2, 3)))
    database.close()
    database, store = opened(tmp_path / "w.db")
    tokens_WLE, numbers, maps = store.windows()
    assert ((tokens_WLE == counts(1)).all(), numbers, maps) == (True, (1,), ("digest",))
    assert (store.has("a"), store.has("b"), store.layer_ids) == (True, False, LAYERS)
    found = store.counter("rank")
    assert found is not None
    assert (found == counts(2)).all()
    (swap,) = Ledger(database).swaps()
    assert (swap.after, swap.promised, swap.before_LP.tolist()) == (1, 0.5, [[0, 1, 2], [3, 4, 5]])


def test_only_the_newest_windows_stay(tmp_path: Path) -> None:
    """Their numbers go on counting, and the file does not grow."""
    database, store = opened(tmp_path / "w.db")
    pages = []
    for load in range(40):
        store.add(news(load))
        pages.append(database.one("PRAGMA page_count")[0])
    tokens_WLE, numbers, _ = store.windows()
    assert numbers == (37, 38, 39, 40)
    assert (tokens_WLE[-1] == counts(39)).all()
    assert max(pages) == max(pages[:8])


def test_a_batch_larger_than_the_rolling_window(tmp_path: Path) -> None:
    _, store = opened(tmp_path / "w.db")
    assert store.add(Heard(tuple(Window(counts(load), LAYERS) for load in range(9)))) == 9
    assert (store.windows()[0] == np.array([counts(load) for load in range(5, 9)])).all()


def test_windows_that_fall_out_at_once_are_counted(tmp_path: Path) -> None:
    """Of many that come together only those are written that stay."""
    _, store = opened(tmp_path / "w.db")
    told = tuple(Window(counts(load), LAYERS) for load in range(9))
    store.add(Heard(told[:3], more=6))
    assert (store.newest, store.windows()[1]) == (3, ())
    store.add(Heard(told[3:]))
    assert (store.newest, store.windows()[1]) == (9, (6, 7, 8, 9))
    assert (store.windows()[0] == np.array([counts(load) for load in range(5, 9)])).all()


def test_what_cannot_come_again_is_forgotten(tmp_path: Path) -> None:
    _, store = opened(tmp_path / "w.db")
    store.add(Heard(keys=("a", "b")))
    store.add(Heard(present=("b", "c")))
    assert [store.has(key) for key in "abc"] == [False, True, False]


def test_counts_past_32_bits_are_kept(tmp_path: Path) -> None:
    _, store = opened(tmp_path / "w.db")
    large = counts(1) + (1 << 40)
    store.add(Heard((Window(large, LAYERS),)))
    assert (store.windows()[0][0] == large).all()


def test_windows_of_another_model_are_refused(tmp_path: Path) -> None:
    """Nothing of that news is kept, and the file still serves its own."""
    _, store = opened(tmp_path / "w.db")
    store.add(news(1, "a"))
    for other in (Window(counts(1)[:2], LAYERS[:2]), Window(counts(1)[:, :32], LAYERS)):
        with pytest.raises(BadInput, match="--state"):
            store.add(Heard((other,), ("b",)))
    assert not store.has("b")
    assert store.add(news(2, "c")) == 1


def test_a_full_disk_keeps_what_was(tmp_path: Path) -> None:
    """One line, the news is not told as heard, and with room it is kept after all."""
    database, store = opened(tmp_path / "w.db", keep=64)
    store.add(news(0, "0"))
    pages = database.one("PRAGMA page_count")[0]
    database.all(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(BadInput, match=r"full.*nothing of it was changed"):
        add_many(store, 40)
    kept = store.newest
    assert not store.has(str(kept))
    database.all("PRAGMA max_page_count = 1000000")
    store.add(news(kept, str(kept)))
    assert (store.newest, store.has(str(kept))) == (kept + 1, True)


@pytest.mark.parametrize("content", [b"layer_id,expert_id\n" * 200, b"SQLite format 3\0" + bytes(4000)])
def test_a_file_that_is_no_database_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.db").write_bytes(content)
    with pytest.raises(BadInput, match=r"move it away|another with --state"):
        Database(tmp_path / "w.db")
    assert (tmp_path / "w.db").read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "w.db")
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(BadInput, match="no file of this `moeplan watch`"):
        Database(tmp_path / "w.db")


def test_a_torn_database_is_one_line(tmp_path: Path) -> None:
    """Cut anywhere: refused, or still readable."""
    database, store = opened(tmp_path / "whole.db")
    for load in range(4):
        store.add(news(load))
    database.close()
    size = (tmp_path / "whole.db").stat().st_size
    refused = 0
    for share in (0.01, 0.3, 0.6, 0.9):
        shutil.copy(tmp_path / "whole.db", tmp_path / "torn.db")
        with (tmp_path / "torn.db").open("r+b") as file:
            file.truncate(int(size * share))
        try:
            _, torn = opened(tmp_path / "torn.db")
            torn.add(news(9))
            torn.windows()
        except BadInput as fault:
            refused += "torn.db" in str(fault)
    assert refused >= 3


def test_a_second_watch_is_refused(tmp_path: Path) -> None:
    opened(tmp_path / "w.db")
    with pytest.raises(BadInput, match="in use by another"):
        opened(tmp_path / "w.db")


def test_a_clock_that_goes_back_does_not_reorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are in the order in which they came, their times never fall."""
    database, store = opened(tmp_path / "w.db")
    for now in (1000.0, 50.0, 60.0, 2000.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        store.add(news(int(now)))
    assert (store.windows()[0] == np.array([counts(load) for load in (1000, 50, 60, 2000)])).all()
    times = [row[0] for row in database.all("SELECT at FROM windows ORDER BY number")]
    assert times == [1000.0, 1000.0, 1000.0, 2000.0]


def test_a_process_that_is_killed_leaves_whole_news(tmp_path: Path) -> None:
    """Killed while it writes: what it has told is there, each window with its key."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.planner.watching.test_store import opened, news\n"
        "_, store = opened(Path(sys.argv[1]), keep=1000)\n"
        "for load in range(10_000):\n"
        "    store.add(news(load % 50, str(load)))\n"
        "    print(load, flush=True)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "w.db")], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    told = -1
    for line in run.stdout:
        told = int(line)
        if told >= 20:
            run.kill()
            break
    run.wait()
    run.stdout.close()
    _, store = opened(tmp_path / "w.db", keep=1000)
    assert store.newest >= told + 1
    assert all(store.has(str(load)) for load in range(store.newest))
    assert (store.windows()[0][-1] == counts((store.newest - 1) % 50)).all()


def test_a_swap_is_settled(tmp_path: Path) -> None:
    database, _ = opened(tmp_path / "w.db")
    ledger = Ledger(database)
    for number in range(20):
        ledger.ask(Swap(number, "p", "m", 1.0, np.zeros((1, 2), np.int32)))
    ledger.settle(20, state=TAKEN, kept=0.25)
    swaps = ledger.swaps()
    assert (len(swaps), swaps[-1].state, swaps[-1].kept, swaps[-1].number) == (16, TAKEN, 0.25, 20)
