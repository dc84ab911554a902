"""Samples begin together, hold many iterations on a GPU, and are read after one synchronisation."""

import contextlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@dataclass
class Stream:
    """What a GPU's stream is given, in order; the work takes two milliseconds."""

    told: list[str] = field(default_factory=list)
    now_ms: float = 0.0

    def work(self) -> str:
        self.told.append("work")
        self.now_ms += 2.0
        return "result"

    def together(self) -> None:
        self.told.append("together")
        self.now_ms += 50.0  # the others are late: no part of a sample

    def synchronise(self) -> None:
        self.told.append("synchronise")

    def event(self) -> "Event":
        return Event(self)


class Event:
    def __init__(self, stream: Stream) -> None:
        self.stream, self.at_ms = stream, float("nan")

    def record(self) -> None:
        self.stream.told.append("event")
        self.at_ms = self.stream.now_ms

    def elapsed_time(self, other: "Event") -> float:
        assert self.stream.told[-1] == "synchronise", "an event is read before the stream has come to it"
        return other.at_ms - self.at_ms


def test_events_enclose_many_iterations_that_begin_together() -> None:
    """Two samples of three iterations, one synchronisation."""
    from probes.ranks.clock import CudaClock

    stream = Stream()
    clock = CudaClock(stream.together, 3, stream.event, stream.synchronise)
    assert [clock.sample(stream.work) for _ in range(2)] == ["result"] * 2
    assert stream.told == ["together", "event", "work", "work", "work", "event"] * 2
    assert clock.seconds() == pytest.approx([0.002, 0.002])
    assert stream.told.count("synchronise") == 1
    assert clock.seconds() == []


def test_the_cpu_clock_counts_the_work_alone() -> None:
    """Not the wait for the others."""
    from probes.ranks.clock import CpuClock

    told: list[str] = []
    clock = CpuClock(lambda: told.append("together"))
    clock.sample(lambda: told.append("work"))
    (seconds,) = clock.seconds()
    assert told == ["together", "work"]
    assert 0 <= seconds < 1


class Graph:
    """Replays what was recorded."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def replay(self) -> None:
        self.stream.told.append("replay")


@contextlib.contextmanager
def records(graph: Graph) -> Iterator[None]:
    graph.stream.told.append("recording")
    yield


@contextlib.contextmanager
def refuses(graph: Graph) -> Iterator[None]:
    yield
    raise RuntimeError("operation not permitted when stream is capturing\nand more")


def captured(stream: Stream, recording: Any, *others: str) -> tuple[Any, str]:
    from probes.ranks.clock import capture

    return capture(stream.work, lambda word: [word, *others], lambda: Graph(stream), recording)


def test_a_captured_phase_is_replayed() -> None:
    """It gives what the recorded run gave, after warm-ups outside of the recording."""
    stream = Stream()
    work, note = captured(stream, records, "")
    assert (work(), note) == ("result", "")
    assert stream.told == ["work"] * 3 + ["recording", "work", "replay"]


def test_a_phase_that_cannot_be_captured_is_timed_as_it_is() -> None:
    """With a note that holds the reason's first line."""
    stream = Stream()
    work, note = captured(stream, refuses, "")
    assert work() == "result"
    assert stream.told[-1] == "work"
    assert note.endswith("failed on rank 0 (operation not permitted when stream is capturing)")


def test_no_rank_replays_what_another_could_not_capture() -> None:
    stream = Stream()
    work, note = captured(stream, records, "no memory")
    work()
    assert "replay" not in stream.told
    assert note.endswith("failed on rank 1 (no memory)")


class Posted:
    """A collective that was begun; it writes down how it is waited for."""

    def __init__(self) -> None:
        self.waited: list[tuple[Any, ...]] = []

    def wait(self, *limit: Any) -> None:
        self.waited.append(limit)


@pytest.mark.parametrize(("device", "limits"), [("cuda", 0), ("cpu", 1)])
def test_no_host_waits_for_a_gpu(device: str, limits: int) -> None:
    """A time limit makes NCCL's wait block the host, which the timed part must not."""
    import torch

    from probes.ranks.party import Limit
    from probes.ranks.virtual import Whereabouts
    from probes.ranks.wire import Tally, Wire

    where, units, limit = torch.device(device), torch.zeros(1), Limit.from_now(9.0)
    wire = Wire(0, where, None, Whereabouts(), units, Tally(), limit)
    posted = Posted()
    wire.finish([posted])  # type: ignore[list-item]
    assert [len(given) for given in posted.waited] == [limits]
