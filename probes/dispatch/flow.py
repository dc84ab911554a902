"""A flow: records through one or two hops to the GPUs that work on them, and results back. Imports torch.

A flow is a list of legs. A leg is one exchange: it takes records that this rank holds (its own, or what an
earlier leg brought) to other ranks. On the CPU all receives are posted at once and a leg begins as soon as
the one before it has arrived, so that hops overlap as in the kernels of engines; with NCCL leg follows leg.
The CUDA path was not run on a GPU when this was written.

Shapes: R records of this rank, M records of one leg, G GPUs (ranks), B bytes of a record, H elements of a
vector.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from probes.ranks.wire import Wire


@dataclass(frozen=True, eq=False)
class Leg:
    """One exchange. `source` is the leg that brought what is sent on; None: this rank's own records.

    `row_M` are the rows of those, in order of destination.
    """

    source: int | None
    row_M: Tensor
    sent_G: list[int]
    received_G: list[int]


@dataclass(frozen=True, eq=False)
class Flow:
    """Legs in the order in which they begin, and those whose arrivals are worked on, in order."""

    legs: tuple[Leg, ...]
    ends: tuple[int, ...]
    own_rows: int

    def rows(self, leg: int | None) -> int:
        """Records that a leg brings; None: this rank's own."""
        return self.own_rows if leg is None else sum(self.legs[leg].received_G)

    def onward(self, leg: int | None) -> list[int]:
        """The legs that send on what this one brought."""
        return [number for number, other in enumerate(self.legs) if other.source == leg]


def there(wire: Wire, flow: Flow, records_RB: Tensor) -> Tensor:
    """arrived_MB: the records that this rank works on."""
    size = records_RB.shape[1]
    arrived = [_empty(sum(leg.received_G), size, records_RB) for leg in flow.legs]
    exchange = _Exchange(wire, range(len(flow.legs)), [leg.received_G for leg in flow.legs], arrived)
    for number, leg in enumerate(flow.legs):
        if leg.source is not None:
            exchange.await_leg(leg.source)
        held_XB = records_RB if leg.source is None else arrived[leg.source]
        exchange.send(number, held_XB[leg.row_M].split(leg.sent_G))
    exchange.finish()
    return torch.cat([arrived[end] for end in flow.ends])


def back(
    wire: Wire,
    flow: Flow,
    results_MH: Tensor,
    pack: Callable[[Tensor], Tensor],
    unpack: Callable[[Tensor], Tensor],
) -> Tensor:
    """sums_RH of this rank's own records: results go back as those came, added up at each rank between."""
    width, size = results_MH.shape[1], pack(results_MH[:0]).shape[1]
    own: Sequence[Tensor] = results_MH.split([flow.rows(end) for end in flow.ends])
    results = dict(zip(flow.ends, own, strict=True))
    returned = [_empty(sum(leg.sent_G), size, results_MH) for leg in flow.legs]
    backwards = range(len(flow.legs))[::-1]
    exchange = _Exchange(wire, backwards, [leg.sent_G for leg in flow.legs], returned)

    def gather(number: int | None) -> Tensor:
        """What goes back where a leg came from: this rank's results, and what came back to it."""
        onward = flow.onward(number)
        if number in results and not onward:
            return results[number]
        sums_XH = results_MH.new_zeros((flow.rows(number), width))
        if number in results:
            sums_XH += results[number]
        for after in onward:
            exchange.await_leg(after)
            sums_XH.index_add_(0, flow.legs[after].row_M, unpack(returned[after]))
        return sums_XH

    for number in backwards:
        exchange.send(number, pack(gather(number)).split(flow.legs[number].received_G))
    exchange.finish()
    return gather(None)


def _empty(rows: int, size: int, like: Tensor) -> Tensor:
    return torch.empty((rows, size), dtype=torch.uint8, device=like.device)


class _Exchange:
    """The transfers of one pass through a flow; `counts` are the records that come, by leg and rank.

    `order`: of the legs, as they are sent. Receives are posted in it, for gloo sends first what was awaited
    first: in another order the part that others wait for comes last, and hops follow each other.
    """

    def __init__(
        self, wire: Wire, order: Sequence[int], counts: Sequence[list[int]], buffers: Sequence[Tensor]
    ) -> None:
        self._wire = wire
        self._incoming = [buffer.split(counts_G) for buffer, counts_G in zip(buffers, counts, strict=True)]
        self._overlaps = wire.overlaps
        self._receives: list[list[Any]] = [[] for _ in order]
        self._sends: list[Any] = []
        for leg in order if self._overlaps else ():
            self._receives[leg] = wire.receive(self._incoming[leg], tag=leg)

    def send(self, leg: int, outgoing: Sequence[Tensor]) -> None:
        if self._overlaps:
            self._sends += self._wire.send(outgoing, self._incoming[leg], tag=leg)
        else:
            self._wire.swap(outgoing, self._incoming[leg])

    def await_leg(self, leg: int) -> None:
        self._wire.finish(self._receives[leg])
        self._receives[leg] = []

    def finish(self) -> None:
        for leg in range(len(self._receives)):
            self.await_leg(leg)
        self._wire.finish(self._sends)
