"""What a launched rank says when it cannot unwind: its main thread is inside torch, and hears nothing.

A thread beside it waits for a signal that asks us to end, and for the end of the run's time. It gives the
main thread a while to end by itself, then says in one line where it hangs, and ends the process.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from probes.ranks.party import Limit

UNWIND_SECONDS = 2.0  # after a signal
LATE_SECONDS = 7.0  # after the end of the time: ranks that wait call the roll first, and tell each other
AGENT_SECONDS = 1.0  # torchrun's ranks have sessions of their own: nothing else ends them when it is killed
OUT_OF_TIME = 1  # exit code


@dataclass
class LastWords:
    """`phase` is where the rank is."""

    phase: str = "start"


@contextlib.contextmanager
def last_words(rank: int, limit: Limit, parent: int) -> Iterator[LastWords]:
    """For the time of the block. Signals are heard where this is the main thread, and Python handles them."""
    words = LastWords()
    is_main = threading.current_thread() is threading.main_thread()
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False) if is_main else -1
    listener = threading.Thread(target=_listen, args=(heard, rank, limit, words, parent), daemon=True)
    listener.start()
    try:
        yield words
    finally:
        if is_main:
            signal.set_wakeup_fd(before)
        os.close(told)  # the listener ends
        listener.join()
        os.close(heard)


def _listen(heard: int, rank: int, limit: Limit, words: LastWords, parent: int) -> None:
    """Return when the block is over; end the process where it is not over in time."""
    end, code = limit.end + LATE_SECONDS, OUT_OF_TIME
    why = f"the run was ended after {limit.seconds:g} s"
    of_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    while True:
        if not select.select([heard], [], [], min(max(end - time.monotonic(), 0.0), AGENT_SECONDS))[0]:
            if of_torchrun and os.getppid() != parent:
                why, end = "torchrun was killed", time.monotonic()
            if time.monotonic() >= end:
                os.write(2, f"moeplan: rank {rank} hangs in '{words.phase}'; {why}\n".encode())
                os._exit(code)
            continue
        numbers = os.read(heard, 64)
        if not numbers:
            return
        stops = [number for number in numbers if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        if stops and code == OUT_OF_TIME:
            why, code = f"ended by {signal.Signals(stops[0]).name}", 128 + stops[0]
            end = time.monotonic() + UNWIND_SECONDS
