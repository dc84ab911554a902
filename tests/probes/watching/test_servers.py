"""Servers that tell their load, or misbehave: a local one that answers as the engines' code does."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from planner.base import BadInput
from planner.load import Heard, Source
from planner.watching.database import Database
from planner.watching.store import Store
from probes.routing.web import Server
from probes.watching.place import Place
from probes.watching.registry import find_source
from probes.watching.sources.dumps import Dumps
from probes.watching.sources.sglang import Recorder
from tests.planner.engines.examples import TINY
from tests.planner.watching.watched import counts
from tests.probes.engine_server import Engine, ok, serving

Counts = npt.NDArray[np.int64]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with serving(Engine()) as found:
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Database(tmp_path / "w.db"), 100, TINY.experts)


def hear(source: Source, store: Store) -> list[Heard]:
    news = []
    for heard in source.poll(store):
        store.add(heard)
        news.append(heard)
    return news


def newest(store: Store) -> Counts:
    return np.asarray(store.windows()[0][-1])


def decoder_rows(tokens_LE: Counts) -> list[list[int]]:
    """With the dense layers' rows, as engines have them."""
    rows = np.zeros((TINY.layers, TINY.experts), dtype=np.int64)
    rows[list(TINY.moe_layer_ids)] = tokens_LE
    return rows.tolist()


class FastDeploy:
    """Counters of ranks with two GPUs each, behind one server a rank."""

    def __init__(self, engine: Engine) -> None:
        self.tokens_LE = np.zeros_like(counts(1))
        engine.answers["/get_per_expert_tokens_stats"] = self.answer

    def answer(self, body: Any) -> tuple[int, bytes]:
        if body != {"user": "me", "passwd": "secret"}:
            return 401, json.dumps({"code": 1, "msg": "user or passwd is invalid"}).encode()
        half = self.tokens_LE // 2
        return ok({"code": 0, "msg": "ok", "data": [decoder_rows(half), decoder_rows(self.tokens_LE - half)]})


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FD_EPLB_USER", "me")
    monkeypatch.setenv("FD_EPLB_PASSWORD", "secret")


@pytest.mark.usefixtures("credentials")
def test_counters_of_all_ranks_are_windows(engine: Engine, store: Store) -> None:
    """What each counted since the last round, summed; one that began anew is told, and counts from 0."""
    with serving(Engine()) as other:
        ranks = [FastDeploy(engine), FastDeploy(other)]
        place = Place(urls=(engine.url, other.url), timeout_seconds=5)
        source = find_source(None, "fastdeploy", place).source(place, TINY)
        ranks[0].tokens_LE = counts(1)
        hear(source, store)
        assert (newest(store) == counts(1)).all()
        ranks[0].tokens_LE = counts(1) + counts(2)
        ranks[1].tokens_LE = counts(3)
        hear(source, store)
        assert (newest(store) == counts(2) + counts(3)).all()
        ranks[0].tokens_LE = counts(4) // 100  # the server was started anew
        (heard,) = hear(source, store)
        assert (newest(store) == counts(4) // 100).all()
        assert [engine.url in note for note in heard.notes] == [True]
        (heard,) = hear(source, store)  # nobody was served
        assert (heard.windows, heard.notes) == ((), ())


@pytest.mark.usefixtures("credentials")
def test_counters_go_on_after_a_restart_of_watch(engine: Engine, tmp_path: Path) -> None:
    """What came meanwhile is one window; nothing is counted twice."""
    rank = FastDeploy(engine)
    place = Place(urls=(engine.url,), timeout_seconds=5)
    for number in (1, 2, 3):
        rank.tokens_LE = rank.tokens_LE + counts(number)
        database = Database(tmp_path / "again.db")
        again = Store(database, 100, TINY.experts)
        hear(find_source(None, "fastdeploy", place).source(place, TINY), again)
        assert (newest(again) == counts(number)).all()
        database.close()


def answers(value: Any) -> tuple[int, bytes]:
    return ok({"code": 0, "msg": "ok", "data": value})


GOOD = decoder_rows(counts(1))


@pytest.mark.parametrize(
    "answer",
    [
        (200, b""),
        (200, b"<html>"),
        (200, b"\xff\xfe"),
        (200, b'{"code": 0, "data": [[[1, 2'),
        (404, b'{"detail":"Not Found"}'),
        (302, b"http://127.0.0.1:1/"),
        ok([]),
        ok({"code": 1, "msg": "redundant expert is disabled"}),
        answers(None),
        answers([]),
        answers([[[1, 2], [3]]]),
        answers([GOOD[:-1]]),
        answers([[row[:-1] for row in GOOD]]),
        answers([[[-1, *row[1:]] for row in GOOD]]),
        answers([[[0.5, *row[1:]] for row in GOOD]]),
        answers([[[1e300, *row[1:]] for row in GOOD]]),
        answers([[[1 << 70, *row[1:]] for row in GOOD]]),
        answers([[["1", *row[1:]] for row in GOOD]]),
        answers([[[None, *row[1:]] for row in GOOD]]),
        answers([[[10**9, *row[1:]] for row in GOOD]]),
    ],
)
@pytest.mark.usefixtures("credentials")
def test_an_answer_of_another_shape_is_one_line(
    answer: tuple[int, bytes], engine: Engine, store: Store
) -> None:
    """Nothing is kept of it, and the next good one is heard whole."""
    place = Place(urls=(engine.url,), timeout_seconds=5)
    source = find_source(None, "fastdeploy", place).source(place, TINY)
    engine.answers["/get_per_expert_tokens_stats"] = answer
    with pytest.raises(BadInput) as fault:
        hear(source, store)
    assert engine.url in str(fault.value)
    assert "\n" not in str(fault.value)
    engine.answers["/get_per_expert_tokens_stats"] = answers([GOOD])
    hear(source, store)
    assert (store.newest, (newest(store) == counts(1)).all()) == (1, True)


@pytest.mark.parametrize(
    "drip", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"]
)
@pytest.mark.usefixtures("credentials")
def test_a_server_that_drips_or_never_answers_is_left_in_time(drip: bytes, store: Store) -> None:
    """In its status line, its headers or its body, a byte at a time."""
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        line, _ = listening.accept()
        with line:
            line.sendall(drip)
            with contextlib.suppress(OSError):  # we were left
                while not over.wait(0.05):
                    line.sendall(b"x" if drip else b"")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    place = Place(urls=(f"http://127.0.0.1:{listening.getsockname()[1]}",), timeout_seconds=0.4)
    source = find_source(None, "fastdeploy", place).source(place, TINY)
    began = time.monotonic()
    with pytest.raises(BadInput, match="no complete answer within"):
        hear(source, store)
    assert time.monotonic() - began < 5
    over.set()
    thread.join(timeout=10)
    listening.close()


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        ((), "name it with --server"),
        (("http://h", "http://h"), "given twice"),
        (("ftp://h",), "give the server"),
    ],
)
def test_servers_that_cannot_be_asked(urls: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        find_source("fastdeploy", None, Place(urls=urls)).source(Place(urls=urls), TINY)


class SGLang:
    """A recorder that writes what was counted since its last dump, where it runs; in NumPy's format here."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.folder, self.recording, self.dumps = folder, False, 0
        self.passes = list[Counts]()
        engine.answers["/start_expert_distribution_record"] = lambda _: self.start()
        engine.answers["/dump_expert_distribution_record"] = lambda _: self.dump()

    def start(self) -> tuple[int, bytes]:
        self.recording, self.passes = True, []
        return 200, b"Start recording.\n"

    def dump(self) -> tuple[int, bytes]:
        told = np.zeros((8, TINY.layers, TINY.experts), dtype=np.int32)
        for place, passed in enumerate(self.passes if self.recording else []):
            told[place] = decoder_rows(passed)
        np.save(self.folder / f"expert_distribution_recorder_{1000 + self.dumps}.5.npy", told)
        self.dumps, self.passes = self.dumps + 1, []
        return 200, b"Dump.\n"


@pytest.fixture
def recorder(engine: Engine, tmp_path: Path) -> tuple[SGLang, Source]:
    (tmp_path / "dumps").mkdir()
    dumps = Dumps(tmp_path / "dumps", TINY, ("*.npy",), remove_read=True)
    return SGLang(engine, tmp_path / "dumps"), Recorder(Server(engine.url, 5), dumps, file_seconds=0.4)


def test_a_recorder_is_started_dumped_and_started_again_in_a_new_server(
    recorder: tuple[SGLang, Source], store: Store, tmp_path: Path
) -> None:
    """A dump a round: its passes in a few windows. What was read is removed."""
    server, source = recorder
    hear(source, store)
    assert (server.recording, store.newest) == (True, 0)
    server.passes = [counts(1, draw) for draw in range(6)]
    hear(source, store)
    tokens_WLE = store.windows()[0]
    assert (len(tokens_WLE), tokens_WLE.sum()) == (4, sum(counts(1, draw).sum() for draw in range(6)))
    server.recording = False  # a new server
    hear(source, store)
    assert (server.recording, store.newest) == (True, 4)
    assert list((tmp_path / "dumps").iterdir()) == []


def test_a_dump_that_lies_elsewhere_is_told(
    recorder: tuple[SGLang, Source], store: Store, tmp_path: Path
) -> None:
    server, source = recorder
    server.folder = tmp_path / "elsewhere"
    server.folder.mkdir()
    (heard,) = [heard for heard in hear(source, store) if heard.said]
    assert "SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR" in heard.said[0]


def test_a_recorder_with_a_file_a_rank_is_refused(
    recorder: tuple[SGLang, Source], engine: Engine, store: Store
) -> None:
    engine.answers["/server_info"] = ok({"expert_distribution_recorder_mode": "per_pass"})
    with pytest.raises(BadInput, match="recorder-mode stat"):
        hear(recorder[1], store)
    assert engine.paths == ["/server_info"]


def test_the_balance_that_sglang_exports(
    recorder: tuple[SGLang, Source], engine: Engine, store: Store
) -> None:
    """Mean over max since the last round, told as max over mean."""
    found = []
    for total, count in ((5.0, 10.0), (13.0, 20.0), (13.0, 20.0)):
        text = (
            f'# HELP x y\nsglang:eplb_balancedness_sum{{forward_mode="decode"}} {total}\n'
            f'sglang:eplb_balancedness_count{{forward_mode="decode"}} {count}\n'
        )
        engine.answers["/metrics"] = (200, text.encode())
        found.append(hear(recorder[1], store)[-1].signals["served_max_over_mean"])
    assert found == pytest.approx([2.0, 1.25, 20 / 13])


def test_loads_of_gpus_are_a_signal(engine: Engine, store: Store) -> None:
    """RTP-LLM tells no experts: how even it is, and nothing to plan from."""
    lines = [
        f'rtp_llm_gpu_loads{{ep_rank="{rank}",layer="{layer}",host="a\\"b"}} {1 + rank * layer}'
        for rank in range(2)
        for layer in range(3)
    ]
    engine.answers["/metrics"] = (200, "\n".join(lines).encode())
    source = find_source("rtp_llm", None, Place()).source(Place(urls=(engine.url,)), TINY)
    (heard,) = hear(source, store)
    assert heard.windows == ()
    assert heard.signals["served_max_over_mean"] == pytest.approx((1 + 2 * 2 / 3 + 2 * 3 / 4) / 3)


@pytest.mark.parametrize("text", [b"\xff", b"<html>", b"up 1\n", b"", b'rtp_llm_gpu_loads{layer="1"} 4\n'])
def test_metrics_without_loads_are_one_line(text: bytes, engine: Engine, store: Store) -> None:
    engine.answers["/metrics"] = (200, text)
    source = find_source("rtp_llm", None, Place()).source(Place(urls=(engine.url,)), TINY)
    with pytest.raises(BadInput, match=r"metrics|rtp_llm_gpu_loads|Prometheus"):
        hear(source, store)
