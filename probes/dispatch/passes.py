"""One row under one side on this rank, as it is sent: by torch's exchanges, or by an engine's kernels.

Imports torch. Engines' kernels know slots, not experts: what they tell is how many rows came for each slot,
neither from whom nor how many bytes. They were not run on a GPU when this was written.

Shapes: T tokens of this rank, K = top_k, H hidden, P slots, Z slots of this GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from planner.base import BadInput
from probes.dispatch.batch import (
    Batch,
    Tokens,
    apply_expert,
    combine,
    compute,
    dispatch,
    expert_matrix,
    looks,
    prepare,
)
from probes.dispatch.job import DispatchJob
from probes.dispatch.kernels import size as kernels
from probes.dispatch.kernels.registry import TORCH, choose, libraries
from probes.dispatch.seen import ANY_SOURCE
from probes.ranks.wire import Wire


class Pass(Protocol):
    """Dispatch, compute and combine, as often as one likes."""

    @property
    def counts_bytes(self) -> bool: ...

    def dispatch(self) -> Any: ...

    def compute(self, arrived: Any) -> Tensor: ...

    def combine(self, arrived: Any, results: Tensor) -> Tensor: ...

    @property
    def matrices(self) -> list[list[int]]:
        """As `Seen` has them: what this GPU's slots hold."""

    def rows_Z(self) -> list[int]:
        """Rows that each slot of this GPU works on."""

    def received(self, arrived: Any) -> tuple[list[list[int]], str]:
        """As `Seen` has them: what came, and the first that came to a wrong slot."""


@dataclass(frozen=True, eq=False)
class TorchPass:
    wire: Wire
    batch: Batch
    counts_bytes: bool = True

    def dispatch(self) -> Tensor:
        return dispatch(self.wire, self.batch)

    def compute(self, arrived: Tensor) -> Tensor:
        return compute(self.batch, arrived)

    def combine(self, arrived: Tensor, results: Tensor) -> Tensor:
        del arrived
        return combine(self.wire, self.batch, results)

    @property
    def matrices(self) -> list[list[int]]:
        return self.batch.matrices

    def rows_Z(self) -> list[int]:
        return [len(row_X) for _, row_X, _ in self.batch.tasks]

    def received(self, arrived: Tensor) -> tuple[list[list[int]], str]:
        del arrived
        return self.batch.received, self.batch.misplaced


@dataclass(frozen=True, eq=False)
class EnginePass:
    """`weights` are the matrices of this GPU's slots, `experts` their ids."""

    job: DispatchJob
    passes: kernels.Passes
    weights: Sequence[Tensor]
    experts: Sequence[int]
    counts_bytes: bool = False

    def dispatch(self) -> Any:
        return self.passes.dispatch()

    def compute(self, arrived: Any) -> Tensor:
        return self.passes.compute(arrived, self._worked)

    def combine(self, arrived: Any, results: Tensor) -> Tensor:
        return self.passes.combine(arrived, results).to(self.weights[0].dtype)

    @property
    def matrices(self) -> list[list[int]]:
        return [[expert, *looks(weight)] for expert, weight in zip(self.experts, self.weights, strict=True)]

    def rows_Z(self) -> list[int]:
        return self.passes.arrived_Z(self.passes.dispatch())[: len(self.experts)]

    def received(self, arrived: Any) -> tuple[list[list[int]], str]:
        counts = zip(self.experts, self.passes.arrived_Z(arrived), strict=False)
        return [[ANY_SOURCE, expert, count] for expert, count in sorted(counts) if count], ""

    def _worked(self, slot: int, rows_XH: Tensor) -> Tensor:
        if slot >= len(self.weights):  # only other sides have this slot, and nothing comes for it
            return rows_XH
        return apply_expert(self.job, rows_XH.to(self.weights[slot].dtype), self.weights[slot])


class TorchSender:
    """Makes the passes of a run; nothing is kept between them."""

    def __init__(self, job: DispatchJob, wire: Wire) -> None:
        self._job, self._wire = job, wire

    def prepare(self, tokens: Tokens, row: int, side_name: str) -> Pass:
        return TorchPass(self._wire, prepare(self._job, self._wire, tokens, row, side_name))

    def close(self) -> None:
        pass


class EngineSender:
    """Makes the passes of a run through buffers that hold the side with the most slots.

    The slots of a smaller side are numbered as if each GPU had that many: the rest of them gets nothing.
    """

    def __init__(self, job: DispatchJob, wire: Wire, size: kernels.Size, buffers: kernels.Buffers) -> None:
        self._job, self._wire, self._size, self._buffers = job, wire, size, buffers

    def prepare(self, tokens: Tokens, row: int, side_name: str) -> Pass:
        job, wire = self._job, self._wire
        expert_P = job.sides[side_name].expert_LP[row].astype(np.int64)
        per_gpu = len(expert_P) // wire.gpus
        slots_TK = job.slots_TK(side_name, row, wire.rank)
        numbered_TK = renumbered(slots_TK, per_gpu, self._size.slots_per_gpu)
        brought = kernels.Brought(
            tokens.vectors_TH.to(torch.bfloat16),
            torch.as_tensor(numbered_TK, device=wire.device),
            tokens.gates_TK.to(torch.float32),
        )
        experts = expert_P[wire.rank * per_gpu : (wire.rank + 1) * per_gpu].tolist()
        layer_id = job.layer_ids[row]
        weights = [expert_matrix(layer_id, expert, job.width, wire.device) for expert in experts]
        return EnginePass(job, self._buffers.passes(brought), weights, experts)

    def close(self) -> None:
        self._buffers.close()


def renumbered(slots_TK: np.ndarray, per_gpu: int, wanted: int) -> np.ndarray:
    """Slots of GPUs with `per_gpu` each as those of GPUs with `wanted` each.

    >>> renumbered(np.array([0, 1, 2, 3]), 2, 5).tolist()
    [0, 1, 5, 6]
    """
    found: np.ndarray = slots_TK // per_gpu * wanted + slots_TK % per_gpu
    return found


def open_sender(job: DispatchJob, wire: Wire) -> tuple[TorchSender | EngineSender, tuple[str, ...]]:
    """What sends, the same on every rank, and notes. BadInput where ranks cannot agree."""
    size = size_of(job)
    asked = TORCH if job.virtual else job.kernels
    name, notes = choose(asked, job.transport, size, job.device)
    if job.device == "cuda" and not job.virtual:
        names = wire.gather(name)
        other = next((rank for rank, found in enumerate(names) if found != names[0]), None)
        if other is not None:
            both = f"rank 0 would send with {names[0]}, rank {other} with {names[other]}"
            raise BadInput(f"{both}: install the same on every host, or use --kernels torch")
    if name == TORCH:
        return TorchSender(job, wire), notes
    return EngineSender(job, wire, size, libraries()[name].open(size, dist.group.WORLD)), notes


def size_of(job: DispatchJob) -> kernels.Size:
    slots = max(side.expert_LP.shape[1] for side in job.sides.values())
    return kernels.Size(job.gpus, slots, job.tokens_per_rank, job.width, job.top_k, job.dispatch_dtype)
