"""How large a dispatch is for an engine's kernels, and what one rank brings to it. No torch.

Shapes: T tokens of this rank, K = top_k, H hidden, Z slots of this GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributed import ProcessGroup

Expert = Callable[[int, "Tensor"], "Tensor"]  # what slot z of this GPU makes of rows


@dataclass(frozen=True)
class Size:
    """The same on every rank."""

    gpus: int
    slots: int
    tokens: int
    width: int
    top_k: int
    dispatch_dtype: str = "bf16"

    @property
    def slots_per_gpu(self) -> int:
        return self.slots // self.gpus

    @property
    def most_tokens(self) -> int:
        """What low-latency kernels are told that a rank may bring: a multiple of 4, as their TMA wants."""
        return -(-self.tokens // 4) * 4


@dataclass(frozen=True, eq=False)
class Brought:
    """One rank's tokens and where they go: physical slots, which is what kernels call experts."""

    vectors_TH: "Tensor"  # bf16
    slot_TK: "Tensor"  # int64
    gate_TK: "Tensor"  # float32


class Passes(Protocol):
    """One batch of this rank through a library's kernels, as often as one likes."""

    def dispatch(self) -> Any:
        """What arrived, as the library hands it over."""

    def arrived_Z(self, arrived: Any) -> list[int]:
        """Rows that came for each slot of this GPU."""

    def compute(self, arrived: Any, expert: Expert) -> "Tensor":
        """The experts' results in the shape that `combine` takes."""

    def combine(self, arrived: Any, results: "Tensor") -> "Tensor":
        """sums_TH: the weighted sum for each token of this rank."""


class Buffers(Protocol):
    """A library's communication buffers, made once for a run."""

    def passes(self, brought: Brought) -> Passes: ...

    def close(self) -> None: ...


class Kernels(Protocol):
    """What every module of this folder with a NAME has."""

    NAME: str
    FAMILY: str  # what --kernels calls it
    WRITTEN_AGAINST: str

    def sends(self, transport: str, size: Size) -> bool:
        """Whether these kernels send as the transport says."""

    def available(self) -> str:
        """Why the library cannot be used here; empty where it can."""

    def refuses(self, size: Size) -> str:
        """Why it does not take this size; empty where it does."""

    def open(self, size: Size, group: "ProcessGroup | None") -> Buffers: ...
