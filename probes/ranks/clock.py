"""How long a rank's work takes: by the CPU's clock, or between two events of a GPU's stream. Imports torch.

All ranks begin a sample together. On the CPU that is a barrier; on GPUs it is a tiny all-reduce in the stream
right before the first event, so that no GPU waits for a host. A sample on a GPU is many iterations, which
hides what a launch costs, and nothing is read before all samples are in the stream. The CUDA parts were not
run on a GPU when this was written: their order is tested with stand-ins for events and graphs.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch

CUDA_ITERATIONS = 20
WARM_UPS = 3  # before a capture: libraries set themselves up in their first calls

Result = TypeVar("Result")
Work = Callable[[], Result]


class Clock(Protocol):
    """Samples of one piece of work."""

    def sample(self, work: Work[Result]) -> Result:
        """Time `work`, begun by all ranks together; what it gave."""

    def seconds(self) -> list[float]:
        """Of one run of the work, for each sample since the last call."""


class CpuClock:
    """The performance counter around the work."""

    def __init__(self, together: Callable[[], None]) -> None:
        self._together = together
        self._seconds: list[float] = []

    def sample(self, work: Work[Result]) -> Result:
        self._together()
        start = time.perf_counter()
        result = work()
        self._seconds.append(time.perf_counter() - start)
        return result

    def seconds(self) -> list[float]:
        found, self._seconds = self._seconds, []
        return found


class CudaClock:
    """Two events in the stream around `iterations` runs of the work, read after one synchronisation."""

    def __init__(
        self,
        together: Callable[[], None],
        iterations: int = CUDA_ITERATIONS,
        event: Callable[[], Any] = lambda: torch.cuda.Event(enable_timing=True),
        synchronise: Callable[[], None] = torch.cuda.synchronize,
    ) -> None:
        self._together, self._event, self._synchronise = together, event, synchronise
        self._iterations = iterations
        self._events: list[tuple[Any, Any]] = []

    def sample(self, work: Work[Result]) -> Result:
        first, last = self._event(), self._event()
        self._together()
        first.record()
        result = work()
        for _ in range(1, self._iterations):
            result = work()
        last.record()
        self._events.append((first, last))
        return result

    def seconds(self) -> list[float]:
        self._synchronise()
        events, self._events = self._events, []
        return [first.elapsed_time(last) / 1e3 / self._iterations for first, last in events]


def capture(
    work: Work[Result],
    agree: Callable[[str], list[str]],
    graph: Callable[[], Any] = lambda: torch.cuda.CUDAGraph(),  # noqa: PLW0108 - torch without CUDA has none
    recording: Callable[[Any], AbstractContextManager[Any]] = torch.cuda.graph,
) -> tuple[Work[Result], str]:
    """The work as a CUDA graph that is replayed, and a note where it stays as it was.

    `agree` hands every rank's word to every rank: all replay, or none does.
    """
    for _ in range(WARM_UPS):
        result = work()
    recorded, fault = graph(), ""
    try:
        with recording(recorded):
            result = work()
    except RuntimeError as error:  # torch has no exception of its own for what cannot be captured
        fault = (str(error).splitlines() or [type(error).__name__])[0]
    faults = [(rank, word) for rank, word in enumerate(agree(fault)) if word]
    if faults:
        rank, why = faults[0]
        return work, f"no CUDA graph, launches are timed one by one: capture failed on rank {rank} ({why})"

    def replay() -> Result:
        recorded.replay()
        return result

    return replay, ""
