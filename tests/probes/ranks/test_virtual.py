"""Ranks that are threads of this process: they exchange as processes do, one works at a time, all end."""

import importlib.util
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from probes.ranks.party import Party, RunFailed, Task

if TYPE_CHECKING:  # torch comes with it
    from probes.ranks.wire import Wire

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def found_by(work: "Callable[[Wire], str]", ranks: int = 3, timeout_seconds: float = 60.0) -> list[str]:
    from probes.ranks.virtual import run_virtual

    return run_virtual(Task(Party((0,) * ranks, "cpu", timeout_seconds), work))


def test_rows_come_in_the_order_of_their_senders() -> None:
    """Rank r sends s + 1 rows of the value 10 r + s to rank s, counts first; its own stay with it."""
    import torch

    def work(wire: "Wire") -> str:
        sent_G = [peer + 1 for peer in range(wire.gpus)]
        values_M = torch.tensor([10 * wire.rank + peer for peer in range(wire.gpus)])
        rows_MB = values_M.repeat_interleave(torch.tensor(sent_G))[:, None]
        wire.tally.start()
        came_MB = wire.exchange(rows_MB, sent_G, wire.counts_from_G(sent_G))
        return f"{came_MB.flatten().tolist()} {wire.tally.stop()}"

    assert found_by(work) == [
        "[0, 10, 20] ([8, 16, 24], [8, 8, 8])",
        "[1, 1, 11, 11, 21, 21] ([8, 16, 24], [16, 16, 16])",
        "[2, 2, 2, 12, 12, 12, 22, 22, 22] ([8, 16, 24], [24, 24, 24])",
    ]


def test_every_rank_gets_every_text() -> None:
    assert found_by(lambda wire: " ".join(wire.gather(f"from {wire.rank}"))) == ["from 0 from 1 from 2"] * 3


def test_one_rank_works_at_a_time() -> None:
    """Else the seconds of its work would be those of others too."""
    working: list[int] = []
    most = []

    def work(wire: "Wire") -> str:
        for _ in range(5):
            wire.barrier()
            working.append(wire.rank)
            most.append(len(working))
            time.sleep(0.001)
            working.remove(wire.rank)
        return ""

    found_by(work, ranks=8)
    assert len(most) == 40
    assert max(most) == 1


def test_a_fault_of_one_rank_ends_all() -> None:
    """It comes out as it is, while the others wait for that rank."""

    def work(wire: "Wire") -> str:
        if wire.rank == 1:
            raise ArithmeticError("raised on purpose by a test")
        wire.barrier()
        return ""

    with pytest.raises(ArithmeticError, match="on purpose"):
        found_by(work)
    assert not [thread for thread in threading.enumerate() if "live" in thread.name]


def test_a_rank_that_takes_too_long_is_named() -> None:
    def work(wire: "Wire") -> str:
        wire.status.enter("a long phase")
        if wire.rank == 2:
            time.sleep(1.0)
        wire.barrier()
        return ""

    with pytest.raises(RunFailed, match=r"^virtual rank 2 was in 'a long phase' .* after 0\.3 s"):
        found_by(work, timeout_seconds=0.3)
