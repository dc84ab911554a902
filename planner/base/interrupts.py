"""Ctrl-C while the last steps are taken, which a person wants to see done: noted, not raised."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def finishing() -> Iterator[list[int]]:
    """The first Ctrl-C inside is put into the list that is yielded; the second goes through.

    Only the main thread hears of it, and only where nobody else took care of it.
    """
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        if pressed:
            signal.default_int_handler(number, frame)
        pressed.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
