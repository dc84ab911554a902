"""SIGTERM and SIGHUP unwind this process like Ctrl-C does, so that it cleans up behind itself."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from planner.base import Stopped

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within the block both raise `Stopped`; one that is ignored, as SIGHUP under nohup, stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
