"""Which library multiplies the experts: the first that takes the weights and runs on the GPU at hand."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from probes.dispatch.gemm import deep_gemm, torch_bf16, torch_fp8
from probes.dispatch.gemm.shapes import ExpertShape, Groups

if TYPE_CHECKING:  # torch is imported in the ranks
    from torch import Tensor, device


class Library(Protocol):
    """What every module of this folder that multiplies has."""

    NAME: str
    DTYPES: Sequence[str]
    ALIGNMENT: int

    def available(self, capability: tuple[int, int] | None) -> str: ...

    def make(
        self, shape: ExpertShape, groups: Groups, where: "device", seed: int = 0
    ) -> "Callable[[], Tensor]": ...


BF16 = cast("Library", torch_bf16)
LIBRARIES = (cast("Library", deep_gemm), cast("Library", torch_fp8), BF16)  # the faster ones first


def choose(weight_dtype: str, capability: tuple[int, int] | None) -> tuple[Library, tuple[str, ...]]:
    """The library, and notes: which others take these weights and why they were not used.

    Weights that none takes are timed in bf16, and it is said.
    """
    reasons: list[str] = []
    for library in LIBRARIES:
        if weight_dtype in library.DTYPES:
            why = library.available(capability)
            if not why:
                return library, (f"expert compute was timed with {library.NAME}", *reasons)
            reasons.append(f"not with {library.NAME}: {why}")
    in_place = f"{weight_dtype} weights were timed as bf16, which reads other bytes"
    return BF16, (f"expert compute was timed with {BF16.NAME}", *reasons, in_place)
