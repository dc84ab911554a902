"""Signals that ask us to end."""

import os
import signal

import pytest

from planner.base import Stopped
from probes.ranks.stop import stoppable


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_both_unwind_like_ctrl_c(number: signal.Signals) -> None:
    """What is cleaned up on Ctrl-C is cleaned up on them too; afterwards a signal does what it did before."""
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt) as caught, stoppable():
        os.kill(os.getpid(), number)
    assert isinstance(caught.value, Stopped)
    assert caught.value.number == number
    assert str(caught.value) == f"ended by {number.name}"
    assert signal.getsignal(number) == before


def test_under_nohup_a_hangup_is_no_reason_to_end() -> None:
    """It was ignored, and stays so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
