"""One rank's end of the process group: exchanges. Imports torch.

Every send and receive of an exchange is posted at once. The CUDA and NCCL paths were not run on a GPU when
this was written.

Shapes: M records of one exchange, G GPUs (ranks), B bytes of a record.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from probes.ranks.party import Limit, PeersLostError
from probes.ranks.status import Status


class Tally:
    """Bytes of the tensors that were really posted, by peer, between `start` and `stop`.

    Off while passes are timed: counting takes time too.
    """

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
        return _bytes_G([sent for sent, _ in pairs]), _bytes_G([received for _, received in pairs])


def _bytes_G(exchanges: list[Sequence[Tensor]]) -> list[int]:
    return [sum(part.nbytes for part in parts) for parts in zip(*exchanges, strict=True)]


@dataclass(frozen=True, eq=False)
class Wire:
    """One end of the process group, this rank's.

    `control` carries counts and barriers, over gloo on every machine; virtual ranks have none.
    """

    rank: int
    device: torch.device
    control: dist.ProcessGroup | None
    status: Status
    unit_G: Tensor  # the node or NVLink domain of each rank
    tally: Tally
    limit: Limit

    @property
    def gpus(self) -> int:
        return len(self.unit_G)

    @property
    def overlaps(self) -> bool:
        """Whether one exchange can be under way while another begins: with gloo, whose order is by tag."""
        return self.device.type != "cuda"

    def barrier(self) -> None:
        self._waits(lambda: [dist.barrier(self.control, async_op=True)])

    def together(self) -> None:
        """All ranks go on from here: on the CPU by a barrier, on GPUs in their streams, without the hosts."""
        if self.device.type != "cuda":
            self.barrier()
        else:
            dist.all_reduce(torch.zeros(1, device=self.device))

    def counts_from_G(self, counts_G: list[int]) -> list[int]:
        """How many records each rank will send us, given how many we send each.

        It is the real run's own exchange of sizes.
        """
        counts_GG = [torch.zeros(self.gpus, dtype=torch.int64) for _ in range(self.gpus)]
        self._gather(counts_GG, torch.tensor(counts_G))
        return [int(row_G[self.rank]) for row_G in counts_GG]

    def exchange(self, rows_MB: Tensor, sent_G: list[int], received_G: list[int]) -> Tensor:
        """Uneven all-to-all of rows ordered by destination; returns rows ordered by sender.

        Every send and receive is posted at once, as NCCL does within a group; gloo's own all-to-all goes
        round by round. Receives go first: gloo tells the peer of each on the connection that its own data
        take, and behind those data the peer would wait (half the rate).
        """
        out_MB = torch.empty((sum(received_G), rows_MB.shape[1]), dtype=rows_MB.dtype, device=self.device)
        self.swap(rows_MB.split(sent_G), out_MB.split(received_G))
        return out_MB

    def swap(self, outgoing: Sequence[Tensor], incoming: Sequence[Tensor]) -> None:
        """One exchange as a group: a part to and from each rank, this one's own included."""
        self.tally.add(outgoing, incoming)
        sources, targets = self._others
        posted = [dist.P2POp(dist.irecv, incoming[gpu], gpu) for gpu in sources if len(incoming[gpu])]
        posted += [dist.P2POp(dist.isend, outgoing[gpu], gpu) for gpu in targets if len(outgoing[gpu])]
        incoming[self.rank].copy_(outgoing[self.rank])
        if posted:
            self._waits(lambda: dist.batch_isend_irecv(posted), on_host=self.device.type == "cpu")

    def receive(self, incoming: Sequence[Tensor], tag: int) -> list[dist.Work]:
        """The receives of an exchange, posted; `send` with the same tag is its other half. gloo only."""
        sources, _ = self._others
        filled = [gpu for gpu in sources if len(incoming[gpu])]
        return self._posted(lambda: [dist.irecv(incoming[gpu], gpu, tag=tag) for gpu in filled])

    def send(self, outgoing: Sequence[Tensor], incoming: Sequence[Tensor], tag: int) -> list[dist.Work]:
        """The sends of an exchange, posted, and its local part copied."""
        self.tally.add(outgoing, incoming)
        _, targets = self._others
        incoming[self.rank].copy_(outgoing[self.rank])
        filled = [gpu for gpu in targets if len(outgoing[gpu])]
        return self._posted(lambda: [dist.isend(outgoing[gpu], gpu, tag=tag) for gpu in filled])

    def finish(self, works: Sequence[dist.Work]) -> None:
        """Wait for what was posted: on GPUs their streams do, and the host goes on."""
        if works:
            self._waits(lambda: works, on_host=self.device.type != "cuda")

    @property
    def _others(self) -> tuple[list[int], list[int]]:
        """Ranks in the order in which they are received from, and sent to."""
        steps = range(1, self.gpus)
        return [(self.rank - step) % self.gpus for step in steps], [
            (self.rank + step) % self.gpus for step in steps
        ]

    def _posted(self, post: Callable[[], Sequence[dist.Work | None]]) -> list[dist.Work]:
        try:
            return [work for work in post() if work is not None]
        except RuntimeError as error:
            raise PeersLostError(str(error)) from error

    def gather(self, text: str) -> list[str]:
        """Every rank's text, at every rank.

        As bytes of equal length: torch's own object collectives would unpickle.
        """
        content = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.gpus)]
        self._gather(sizes, torch.tensor([len(content)]))
        padded = torch.zeros(max(int(size) for size in sizes), dtype=torch.uint8)
        padded[: len(content)] = content
        all_padded = [torch.empty_like(padded) for _ in range(self.gpus)]
        self._gather(all_padded, padded)
        return [
            bytes(part[: int(size)].numpy()).decode() for part, size in zip(all_padded, sizes, strict=True)
        ]

    def settle(self) -> float:
        """The clock, once the device has finished what it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def _gather(self, all_parts: list[Tensor], part: Tensor) -> None:
        self._waits(lambda: [dist.all_gather(all_parts, part, group=self.control, async_op=True)])

    def _waits(self, post: Callable[[], Sequence[dist.Work]], *, on_host: bool = True) -> None:
        """For what `post` begins, as long as the run has time; PeersLostError after that.

        Not `on_host`: the device waits, and NCCL's own watchdog ends what does not end.
        """
        self.status.wait(waiting=True)
        try:
            for work in post():
                if on_host and self.limit.over:
                    raise PeersLostError(f"its {self.limit.seconds:g} s are over")
                work.wait(*([self.limit.delta] if on_host else []))
        except RuntimeError as error:  # torch's collectives have no exception of their own for a lost peer
            raise PeersLostError(str(error)) from error
        self.status.wait(waiting=False)
