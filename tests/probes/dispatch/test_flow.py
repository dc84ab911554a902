"""Flows between ranks that are faked: in which order legs are awaited and sent, and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from probes.dispatch.flow import Flow, Leg, back, there
from probes.ranks.wire import Wire

CHUNKS = 3


@dataclass
class AloneWire:
    """The only rank of a group: what it sends is its own. Notes the order of receives and sends."""

    awaited: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    overlaps: bool = True

    def receive(self, incoming: Sequence[Tensor], tag: int) -> list[object]:
        self.awaited.append(tag)
        return [incoming]

    def send(self, outgoing: Sequence[Tensor], incoming: Sequence[Tensor], tag: int) -> list[object]:
        self.sent.append(tag)
        incoming[0].copy_(outgoing[0])
        return []

    def finish(self, works: Sequence[object]) -> None:
        """There is nobody to wait for."""


def two_hops() -> Flow:
    """Two records in each of three chunks, over two hops; the second copies the first record twice."""
    over = [Leg(None, torch.tensor([2 * chunk, 2 * chunk + 1]), [2], [2]) for chunk in range(CHUNKS)]
    inside = [Leg(chunk, torch.tensor([0, 1, 0]), [3], [3]) for chunk in range(CHUNKS)]
    return Flow((*over, *inside), tuple(range(CHUNKS, 2 * CHUNKS)), 2 * CHUNKS)


def as_bytes(vectors_XH: Tensor) -> Tensor:
    return vectors_XH.to(torch.uint8)


def test_what_others_wait_for_is_awaited_first() -> None:
    """On the way there the first hops, on the way back the second ones; never one order for both."""
    for_there, for_back = AloneWire(), AloneWire()
    there(cast("Wire", for_there), two_hops(), torch.zeros((6, 1), dtype=torch.uint8))
    back(cast("Wire", for_back), two_hops(), torch.zeros((9, 1)), as_bytes, lambda read: read.float())
    assert for_there.awaited == for_there.sent == [0, 1, 2, 3, 4, 5]
    assert for_back.awaited == for_back.sent == [5, 4, 3, 2, 1, 0]


def test_results_are_added_up_on_the_way_back() -> None:
    """Each record's results, twice for the one that went out twice."""
    records_RB = torch.arange(6, dtype=torch.uint8)[:, None]
    arrived_MB = there(cast("Wire", AloneWire()), two_hops(), records_RB)
    assert arrived_MB[:, 0].tolist() == [0, 1, 0, 2, 3, 2, 4, 5, 4]
    results_MH = arrived_MB.float() + 1
    sums_RH = back(cast("Wire", AloneWire()), two_hops(), results_MH, as_bytes, lambda read: read.float())
    assert sums_RH[:, 0].tolist() == [2, 2, 6, 4, 10, 6]
