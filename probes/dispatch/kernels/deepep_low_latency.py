"""DeepEP's low-latency kernels: one message a token and slot, straight into the other GPU's memory.

Written against DeepEP 1.2.1; the legacy `deep_ep.Buffer` of 2.1.0 takes the same. Physical slots are its
experts, so that replicas are told apart; the gate weights are applied where results come home. The kernels
pack by themselves (and cast to fp8 where asked), which is timed with them. Imports late. Tested with a
stand-in for the library; not run on a GPU when this was written.

Shapes: T tokens of this rank, K = top_k, H hidden, Z slots of this GPU, M rows of a slot's buffer.
"""

import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.dispatch.kernels import deepep
from probes.dispatch.kernels.size import Brought, Expert, Size

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributed import ProcessGroup

NAME = "DeepEP low-latency"
FAMILY = "deepep"
WRITTEN_AGAINST = "DeepEP 1.2.1"
MOST_TOP_K = 11
WIDTHS = (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192)  # 3072 since 2.0
QUEUE_DEPTH = 1024  # NVSHMEM_QP_DEPTH as the library sets it; two requests a token must fit
Arrived = tuple["Tensor | tuple[Tensor, Tensor]", "Tensor", Any]  # rows (and scales), counts, handle


def sends(transport: str, size: Size) -> bool:
    del size
    return transport == "slot"


def available() -> str:
    return deepep.missing()


def refuses(size: Size) -> str:
    depth, needed = int(os.environ.get("NVSHMEM_QP_DEPTH", QUEUE_DEPTH)), 2 * (size.most_tokens + 1)
    if size.width not in WIDTHS:
        return f"it takes tokens of {', '.join(map(str, WIDTHS))} elements, not {size.width}"
    if size.top_k > MOST_TOP_K:
        return f"it takes at most {MOST_TOP_K} experts a token, not {size.top_k}"
    if needed > depth:
        return f"{size.tokens} tokens a rank need NVSHMEM_QP_DEPTH={needed}, it is {depth}"
    return ""


def open(size: Size, group: "ProcessGroup | None") -> "Buffers":  # noqa: A001 - as every module here has it
    library = importlib.import_module("deep_ep")
    hint = library.Buffer.get_low_latency_rdma_size_hint(size.most_tokens, size.width, size.gpus, size.slots)
    buffer = library.Buffer(
        group,
        num_nvl_bytes=0,
        num_rdma_bytes=hint,
        low_latency_mode=True,
        num_qps_per_rank=size.slots_per_gpu,
        explicitly_destroy=True,
    )
    return Buffers(buffer, size, deepep.id_dtype(library))


@dataclass(frozen=True, eq=False)
class Buffers:
    buffer: Any
    size: Size
    id_dtype: Any

    def passes(self, brought: Brought) -> "Passes":
        return Passes(self.buffer, self.size, brought, brought.slot_TK.to(self.id_dtype))

    def close(self) -> None:
        self.buffer.destroy()


@dataclass(frozen=True, eq=False)
class Passes:
    buffer: Any
    size: Size
    brought: Brought
    ids_TK: "Tensor"

    def dispatch(self) -> Arrived:
        rows, count_Z, handle, _, _ = self.buffer.low_latency_dispatch(
            self.brought.vectors_TH,
            self.ids_TK,
            self.size.most_tokens,
            self.size.slots,
            use_fp8=self.size.dispatch_dtype == "fp8",
            async_finish=False,
            return_recv_hook=False,
        )
        return rows, count_Z, handle

    def arrived_Z(self, arrived: Arrived) -> list[int]:
        return [int(count) for count in arrived[1].tolist()]

    def compute(self, arrived: Arrived, expert: Expert) -> "Tensor":
        """out_ZMH; rows past a slot's count are nobody's."""
        rows_ZMH = deepep.unscaled(arrived[0])
        out_ZMH = rows_ZMH.new_zeros(rows_ZMH.shape)
        for slot, count in enumerate(self.arrived_Z(arrived)):
            out_ZMH[slot, :count] = expert(slot, rows_ZMH[slot, :count]).to(out_ZMH.dtype)
        return out_ZMH

    def combine(self, arrived: Arrived, results: "Tensor") -> "Tensor":
        sums_TH: Tensor = self.buffer.low_latency_combine(
            results, self.ids_TK, self.brought.gate_TK, arrived[2], async_finish=False, return_recv_hook=False
        )[0]
        return sums_TH
