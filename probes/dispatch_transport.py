"""How one rank sends: four transports as tables of who must get which record, one exchange beneath them all. Imports torch.

The CUDA and NCCL paths were not run on a GPU when this was written.

Shapes: R records held, M records of one exchange, G GPUs (ranks), N nodes, B bytes of a record, n assignments in a record's header, H hidden.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from probes.dispatch_job import ENTRY_INTS, RECORD_INTS
from probes.dispatch_status import Status


class PeersLostError(Exception):
    """A collective did not complete: some other rank is gone or late."""


class Tally:
    """Bytes of the tensors that were really posted, by peer, between `start` and `stop`. Off while passes are timed: counting takes time too."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Sequence[Tensor], Sequence[Tensor]]] | None = None

    def start(self) -> None:
        self._pairs = []

    def add(self, outgoing: Sequence[Tensor], incoming: Sequence[Tensor]) -> None:
        if self._pairs is not None:
            self._pairs.append((outgoing, incoming))

    def stop(self) -> tuple[list[int], list[int]]:
        """sent_bytes_G and received_bytes_G, summed over the exchanges since `start`."""
        pairs, self._pairs = self._pairs or [], None
        sent_GX = zip(*(outgoing for outgoing, _ in pairs), strict=True)
        received_GX = zip(*(incoming for _, incoming in pairs), strict=True)
        return [sum(part.nbytes for part in parts) for parts in sent_GX], [sum(part.nbytes for part in parts) for parts in received_GX]


@dataclass(frozen=True, eq=False)
class Wire:
    """One end of the process group, this rank's. `control` carries counts and barriers, over gloo on every machine."""

    rank: int
    device: torch.device
    control: dist.ProcessGroup
    status: Status
    node_G: Tensor
    tally: Tally

    @property
    def gpus(self) -> int:
        return len(self.node_G)

    def barrier(self) -> None:
        self._waits(lambda: dist.barrier(self.control))

    def counts_from_G(self, counts_G: list[int]) -> list[int]:
        """How many records each rank will send us, given how many we send each: the real run's own exchange of sizes."""
        counts_GG = [torch.zeros(self.gpus, dtype=torch.int64) for _ in range(self.gpus)]
        self._waits(lambda: dist.all_gather(counts_GG, torch.tensor(counts_G), group=self.control))
        return [int(row_G[self.rank]) for row_G in counts_GG]

    def exchange(self, rows_MB: Tensor, sent_G: list[int], received_G: list[int]) -> Tensor:
        """Uneven all-to-all of rows ordered by destination; returns rows ordered by sender.

        Every send and receive is posted at once, as NCCL does within a group; gloo's own all-to-all goes round by round.
        """
        out_MB = torch.empty((sum(received_G), rows_MB.shape[1]), dtype=rows_MB.dtype, device=self.device)
        outgoing, incoming = rows_MB.split(sent_G), out_MB.split(received_G)
        posted = []
        for step in range(1, self.gpus):
            to, source = (self.rank + step) % self.gpus, (self.rank - step) % self.gpus
            if sent_G[to]:
                posted.append(dist.P2POp(dist.isend, outgoing[to], to))
            if received_G[source]:
                posted.append(dist.P2POp(dist.irecv, incoming[source], source))
        self.tally.add(outgoing, incoming)
        incoming[self.rank].copy_(outgoing[self.rank])
        if posted:
            self._waits(lambda: [work.wait() for work in dist.batch_isend_irecv(posted)])
        return out_MB

    def settle(self) -> float:
        """The clock, once the device has finished what it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def _waits(self, collective: Callable[[], object]) -> None:
        self.status.wait(waiting=True)
        try:
            collective()
        except RuntimeError as error:  # torch's collectives have no exception of their own for a lost peer
            raise PeersLostError(str(error)) from error
        self.status.wait(waiting=False)


@dataclass(frozen=True, eq=False)
class Hop:
    """One exchange of a dispatch: which held row each outgoing record copies, in order of destination, and how many go and come."""

    row_M: Tensor
    sent_G: list[int]
    received_G: list[int]

    def send(self, wire: Wire, rows_RB: Tensor) -> Tensor:
        return wire.exchange(rows_RB[self.row_M], self.sent_G, self.received_G)

    def send_back(self, wire: Wire, results_MH: Tensor, rows: int) -> Tensor:
        """Results of the received records go back where those came from, and are added up for each of the `rows` held ones."""
        back_MH = wire.exchange(results_MH, self.received_G, self.sent_G)
        sums_RH = torch.zeros((rows, back_MH.shape[1]), dtype=back_MH.dtype, device=back_MH.device)
        return sums_RH.index_add_(0, self.row_M, back_MH)


Reach = Callable[[Wire, Tensor], Tensor]


def open_hop(wire: Wire, reach: Reach, gpu_Rn: Tensor) -> Hop:
    """The hop that takes each record where `reach` says."""
    gpu_M, row_M = reach(wire, gpu_Rn).T.nonzero(as_tuple=True)
    sent_G = torch.bincount(gpu_M, minlength=wire.gpus).tolist()
    return Hop(row_M, sent_G, wire.counts_from_G(sent_G))


def to_gpus(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    """Each GPU that holds a selected slot, once. `gpu_Rn` is the GPU of each assignment's slot."""
    reach_RG = torch.zeros((len(gpu_Rn), wire.gpus), dtype=torch.bool, device=gpu_Rn.device)
    return reach_RG.scatter_(1, gpu_Rn, value=True)


def to_nodes(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    """First hop: on each node that holds a selected slot, the GPU with our own position there. On our own node that is this GPU."""
    reach_RG = to_gpus(wire, gpu_Rn)
    first_RG = torch.zeros_like(reach_RG)
    position = int((wire.node_G[: wire.rank] == wire.node_G[wire.rank]).sum())
    for node in wire.node_G.unique():
        members = (wire.node_G == node).nonzero().flatten()
        first_RG[:, members[position]] = reach_RG[:, members].any(dim=1)
    return first_RG


def to_neighbours(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    """Second hop: a forwarder copies what it got to the GPUs of its node that hold a selected slot."""
    return to_gpus(wire, gpu_Rn) & (wire.node_G == wire.node_G[wire.rank])


def to_all(wire: Wire, gpu_Rn: Tensor) -> Tensor:
    return torch.ones((len(gpu_Rn), wire.gpus), dtype=torch.bool, device=gpu_Rn.device)


HOPS: dict[str, tuple[Reach, ...]] = {"slot": (to_gpus,), "rank": (to_gpus,), "node": (to_nodes, to_neighbours), "allgather": (to_all,)}


def pack(header_Ri: Tensor, vectors_RH: Tensor) -> Tensor:
    """Records as bytes: the int32 header, then the vector. One tensor travels, whatever it holds."""
    return torch.cat([header_Ri.view(torch.uint8), vectors_RH.view(torch.uint8)], dim=1)


def headers(records_RB: Tensor, entries: int) -> tuple[Tensor, Tensor]:
    """origin_R2 (source, token) and entry_Rn3 (slot, expert, gate weight) of packed records."""
    header_Ri = records_RB[:, : 4 * (RECORD_INTS + ENTRY_INTS * entries)].contiguous().view(torch.int32)
    return header_Ri[:, :RECORD_INTS], header_Ri[:, RECORD_INTS:].reshape(len(records_RB), entries, ENTRY_INTS)


def vectors(records_RB: Tensor, entries: int) -> Tensor:
    return records_RB[:, 4 * (RECORD_INTS + ENTRY_INTS * entries) :].contiguous().view(torch.bfloat16)
