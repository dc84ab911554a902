"""NCCL EP's low-latency kernels: one message a token and slot, through NCCL's own device API.

Written against nccl4py 0.3.1, whose `nccl.ep` binds libnccl_ep 0.1 (CUDA 13 alone). Rows are sent in bf16;
the gate weights are applied where results come home. Buffers are made before the clock starts, as the library
wants it; the kernels pack by themselves. Imports late. Tested with a stand-in for the library; not run on a
GPU when this was written.

Shapes: T tokens of this rank, K = top_k, H hidden, Z slots of this GPU, M rows of a slot's buffer.
"""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.dispatch.kernels.size import Brought, Expert, Size

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributed import ProcessGroup

NAME = "NCCL EP low-latency"
FAMILY = "nccl-ep"
WRITTEN_AGAINST = "nccl4py 0.3.1"
Arrived = tuple["Tensor", "Tensor"]  # rows_ZMH, count_Z


def sends(transport: str, size: Size) -> bool:
    del size
    return transport == "slot"


def available() -> str:
    try:
        importlib.import_module("nccl.ep")
    except ImportError as error:  # absent, or built for another CUDA: the library says which
        return f"NCCL EP cannot be used: {(str(error).splitlines() or ['no reason given'])[0]}"
    return ""


def refuses(size: Size) -> str:
    return (
        "moeplan sends bf16 through it, and this plan's dispatch is fp8"
        if size.dispatch_dtype == "fp8"
        else ""
    )


def open(size: Size, group: "ProcessGroup | None") -> "Buffers":  # noqa: A001 - as every module here has it
    library = importlib.import_module("nccl.ep")
    join = importlib.import_module("nccl.ep.interop.torch").get_nccl_comm_from_group
    communicator = join(group)
    config = library.GroupConfig(
        algorithm=library.Algorithm.LOW_LATENCY,
        num_experts=size.slots,
        max_dispatch_tokens_per_rank=size.most_tokens,
        max_recv_tokens_per_rank=size.most_tokens * size.gpus,
        max_token_bytes=2 * size.width,
    )
    return Buffers(library, communicator, library.Group.create(communicator, config), size)


@dataclass(frozen=True, eq=False)
class Buffers:
    library: Any
    communicator: Any
    group: Any
    size: Size

    def passes(self, brought: Brought) -> "Passes":
        library, stream = self.library, _stream()
        shape_ZMH = (self.size.slots_per_gpu, self.size.most_tokens * self.size.gpus, self.size.width)
        rows_ZMH = brought.vectors_TH.new_zeros(shape_ZMH)
        count_Z = brought.slot_TK.new_zeros(shape_ZMH[0]).int()
        sums_TH = brought.vectors_TH.new_zeros(brought.vectors_TH.shape)
        handle = self.group.create_handle(
            library.Layout.EXPERT_MAJOR,
            library.Tensor(brought.slot_TK),
            config=library.HandleConfig(),
            stream=stream,
        )
        return Passes(library, handle, brought, rows_ZMH, count_Z, sums_TH)

    def close(self) -> None:
        self.group.destroy()
        self.communicator.destroy()


@dataclass(frozen=True, eq=False)
class Passes:
    library: Any
    handle: Any
    brought: Brought
    rows_ZMH: "Tensor"
    count_Z: "Tensor"
    sums_TH: "Tensor"

    def dispatch(self) -> Arrived:
        library, stream = self.library, _stream()
        self.handle.dispatch(
            library.DispatchInputs(tokens=library.Tensor(self.brought.vectors_TH)),
            library.DispatchOutputs(tokens=library.Tensor(self.rows_ZMH)),
            layout_info=library.LayoutInfo(expert_counters=library.Tensor(self.count_Z)),
            stream=stream,
        )
        self.handle.complete(stream=stream)
        return self.rows_ZMH, self.count_Z

    def arrived_Z(self, arrived: Arrived) -> list[int]:
        return [int(count) for count in arrived[1].tolist()]

    def compute(self, arrived: Arrived, expert: Expert) -> "Tensor":
        """out_ZMH; rows past a slot's count are nobody's."""
        rows_ZMH = arrived[0]
        out_ZMH = rows_ZMH.new_zeros(rows_ZMH.shape)
        for slot, count in enumerate(self.arrived_Z(arrived)):
            out_ZMH[slot, :count] = expert(slot, rows_ZMH[slot, :count]).to(out_ZMH.dtype)
        return out_ZMH

    def combine(self, arrived: Arrived, results: "Tensor") -> "Tensor":
        del arrived
        library, stream = self.library, _stream()
        outputs = library.CombineOutputs(
            tokens=library.Tensor(self.sums_TH), topk_weights=library.Tensor(self.brought.gate_TK)
        )
        inputs = library.CombineInputs(tokens=library.Tensor(results))
        self.handle.combine(inputs, outputs, stream=stream)
        self.handle.complete(stream=stream)
        return self.sums_TH


def _stream() -> int:
    """The stream that torch works in, as the library takes it."""
    import torch

    return int(torch.cuda.current_stream().cuda_stream) if torch.cuda.is_available() else 0
