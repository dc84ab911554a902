"""DeepEP's normal kernels: one message a token and node, then NVLink; on up to 8 GPUs one a token and GPU.

Written against DeepEP 1.2.1; the legacy `deep_ep.Buffer` of 2.1.0 takes the same. The layout of a dispatch is
computed inside the timed part, as engines do for every step, and the kernels pack by themselves; casting to
fp8 is done before the clock starts, as engines fuse it into what is before. Receiving ranks add up the
weighted results of their slots, which the combine then adds over ranks. Imports late. Tested with a stand-in
for the library; not run on a GPU when this was written.

Shapes: T tokens of this rank, K = top_k, H hidden, Z slots of this GPU, M received tokens.
"""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.dispatch.kernels import deepep
from probes.dispatch.kernels.size import Brought, Expert, Size

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributed import ProcessGroup

NAME = "DeepEP normal"
FAMILY = "deepep"
WRITTEN_AGAINST = "DeepEP 1.2.1"
NVLINK_PEERS = 8  # of a node, fixed in the library
GROUPS = (2, 4, 8, 16, 24, 32, 64, 128, 144, 160)  # those it has a configuration for


@dataclass(frozen=True, eq=False)
class Arrived:
    rows: Any  # rows_MH, or with their scales
    slot_MK: "Tensor"  # of this GPU, -1 where an entry is another's
    gate_MK: "Tensor"
    count_Z: list[int]
    handle: Any


def sends(transport: str, size: Size) -> bool:
    """On one node a token goes to each GPU once, over nodes to each node once."""
    return transport == ("rank" if size.gpus <= NVLINK_PEERS else "node")


def available() -> str:
    return deepep.missing()


def refuses(size: Size) -> str:
    if size.gpus not in GROUPS:
        return f"it has no configuration for {size.gpus} GPUs, only for {', '.join(map(str, GROUPS))}"
    if size.dispatch_dtype == "fp8" and size.width % deepep.SCALED:
        return f"fp8 rows need a multiple of {deepep.SCALED} elements, not {size.width}"
    return ""


def open(size: Size, group: "ProcessGroup | None") -> "Buffers":  # noqa: A001 - as every module here has it
    library = importlib.import_module("deep_ep")
    nvlink_bytes, rdma_bytes = buffer_bytes(library.Buffer, size)
    buffer = library.Buffer(
        group, num_nvl_bytes=nvlink_bytes, num_rdma_bytes=rdma_bytes, explicitly_destroy=True
    )
    return Buffers(buffer, size, deepep.id_dtype(library))


def buffer_bytes(buffer_class: Any, size: Size) -> tuple[int, int]:
    """NVLink and RDMA bytes that the larger of the library's two recommended configurations asks for.

    Sizes are for rows in bf16, which combine sends.
    """
    row_bytes, gpus = 2 * size.width, size.gpus
    configs = (buffer_class.get_dispatch_config(gpus), buffer_class.get_combine_config(gpus))
    nvlink_bytes = max(config.get_nvl_buffer_size_hint(row_bytes, gpus) for config in configs)
    rdma_bytes = max(config.get_rdma_buffer_size_hint(row_bytes, gpus) for config in configs)
    return nvlink_bytes, rdma_bytes


@dataclass(frozen=True, eq=False)
class Buffers:
    buffer: Any
    size: Size
    id_dtype: Any

    def passes(self, brought: Brought) -> "Passes":
        fp8 = self.size.dispatch_dtype == "fp8"
        rows = deepep.scaled(brought.vectors_TH) if fp8 else brought.vectors_TH
        return Passes(self.buffer, self.size, brought, brought.slot_TK.to(self.id_dtype), rows)

    def close(self) -> None:
        self.buffer.destroy()


@dataclass(frozen=True, eq=False)
class Passes:
    buffer: Any
    size: Size
    brought: Brought
    ids_TK: "Tensor"
    rows: Any

    def dispatch(self) -> Arrived:
        to_rank_G, to_node_N, to_slot_P, reach_TG, _ = self.buffer.get_dispatch_layout(
            self.ids_TK, self.size.slots
        )
        rows, slot_MK, gate_MK, count_Z, handle, _ = self.buffer.dispatch(
            self.rows,
            num_tokens_per_rank=to_rank_G,
            num_tokens_per_rdma_rank=to_node_N,
            is_token_in_rank=reach_TG,
            num_tokens_per_expert=to_slot_P,
            topk_idx=self.ids_TK,
            topk_weights=self.brought.gate_TK,
        )
        return Arrived(rows, slot_MK, gate_MK, count_Z, handle)

    def arrived_Z(self, arrived: Arrived) -> list[int]:
        return list(arrived.count_Z)

    def compute(self, arrived: Arrived, expert: Expert) -> "Tensor":
        """out_MH: for each received token the weighted sum over this GPU's slots among those it selects."""
        rows_MH = deepep.unscaled(arrived.rows)
        sums_MH = rows_MH.new_zeros(rows_MH.shape)
        for slot in range(self.size.slots_per_gpu):
            row_X, k_X = (arrived.slot_MK == slot).nonzero(as_tuple=True)
            weighted = expert(slot, rows_MH[row_X]) * arrived.gate_MK[row_X, k_X, None]
            sums_MH.index_add_(0, row_X, weighted.to(sums_MH.dtype))
        return sums_MH

    def combine(self, arrived: Arrived, results: "Tensor") -> "Tensor":
        sums_TH: Tensor = self.buffer.combine(results, arrived.handle)[0]
        return sums_TH
