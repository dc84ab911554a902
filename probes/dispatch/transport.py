"""How one rank sends: four transports as tables of who must get which record. Imports torch.

The exchange itself is that of `probes.ranks.wire`. The CUDA and NCCL paths were not run on a GPU when this
was written.

Shapes: R records held, M records of one exchange, G GPUs (ranks), N nodes, B bytes of a record, n assignments
in a record's header, H hidden.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.dispatch.job import ENTRY_INTS, RECORD_INTS
from probes.ranks.wire import Wire


@dataclass(frozen=True, eq=False)
class Hop:
    """One exchange of a dispatch: how many records go and come, and which held row each outgoing one copies.

    Rows are in order of destination.
    """

    row_M: Tensor
    sent_G: list[int]
    received_G: list[int]

    def send(self, wire: Wire, rows_RB: Tensor) -> Tensor:
        return wire.exchange(rows_RB[self.row_M], self.sent_G, self.received_G)

    def send_back(self, wire: Wire, results_MH: Tensor, rows: int) -> Tensor:
        """Results of the received records go back where those came from.

        They are added up for each of the `rows` held ones.
        """
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
    """First hop: on each node that holds a selected slot, the GPU with our own position there.

    On our own node that is this GPU.
    """
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


HOPS: dict[str, tuple[Reach, ...]] = {
    "slot": (to_gpus,),
    "rank": (to_gpus,),
    "node": (to_nodes, to_neighbours),
    "allgather": (to_all,),
}


def pack(header_Ri: Tensor, vectors_RH: Tensor) -> Tensor:
    """Records as bytes: the int32 header, then the vector. One tensor travels, whatever it holds."""
    return torch.cat([header_Ri.view(torch.uint8), vectors_RH.view(torch.uint8)], dim=1)


def headers(records_RB: Tensor, entries: int) -> tuple[Tensor, Tensor]:
    """origin_R2 (source, token) and entry_Rn3 (slot, expert, gate weight) of packed records."""
    header_Ri = records_RB[:, : 4 * (RECORD_INTS + ENTRY_INTS * entries)].contiguous().view(torch.int32)
    return header_Ri[:, :RECORD_INTS], header_Ri[:, RECORD_INTS:].reshape(
        len(records_RB), entries, ENTRY_INTS
    )


def vectors(records_RB: Tensor, entries: int) -> Tensor:
    return records_RB[:, 4 * (RECORD_INTS + ENTRY_INTS * entries) :].contiguous().view(torch.bfloat16)
