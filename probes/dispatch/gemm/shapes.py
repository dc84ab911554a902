"""What a GPU's experts have to multiply: shapes, rows of each slot, padding, work and bytes. No torch.

Shapes: Z slots of this GPU, M rows with their padding.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.model import ModelSpec

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ExpertShape:
    """One expert: `width` to `intermediate` and back; `matrices` 3 with a gate, 2 without."""

    width: int
    intermediate: int
    matrices: int
    weight_dtype: str
    bytes_per_expert: float

    @property
    def first_columns(self) -> int:
        """Of the first GEMM: gate and up side by side."""
        return (self.matrices - 1) * self.intermediate

    def flops(self, rows: int) -> float:
        return 2.0 * self.matrices * self.width * self.intermediate * rows


def shape_of(model: ModelSpec) -> ExpertShape:
    return ExpertShape(
        model.dispatch_width,
        model.expert_intermediate,
        model.expert_matrices,
        model.weight_dtype,
        model.expert_bytes,
    )


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows of each slot one after the other, each slot's padded to a multiple of `alignment`."""

    rows_Z: Ints
    alignment: int = 1

    @cached_property
    def padded_Z(self) -> Ints:
        padded_Z: Ints = -(-self.rows_Z // self.alignment) * self.alignment
        return padded_Z

    @cached_property
    def ends_Z(self) -> Ints:
        """Where each slot's rows end, padding included."""
        ends_Z: Ints = np.cumsum(self.padded_Z)
        return ends_Z

    @property
    def total(self) -> int:
        return int(self.ends_Z[-1]) if len(self.ends_Z) else 0

    def slot_M(self, padding: int = -1) -> Ints:
        """The slot of each row; `padding` where it belongs to none."""
        slot_M = np.full(self.total, padding, dtype=np.int64)
        for slot, (end, padded, rows) in enumerate(zip(self.ends_Z, self.padded_Z, self.rows_Z, strict=True)):
            slot_M[end - padded : end - padded + rows] = slot
        return slot_M

    def flops(self, shape: ExpertShape) -> float:
        """Without padding: what the model asks for, not what a library makes of it."""
        return shape.flops(int(self.rows_Z.sum()))

    def read_bytes(self, shape: ExpertShape) -> float:
        """Weights of the experts that have rows: each is read once."""
        return shape.bytes_per_expert * int((self.rows_Z > 0).sum())
