"""Which kernels a run sends with: those asked for, or the first library that is there and takes its size."""

from typing import cast

from planner.base import BadInput, modules_with
from probes.dispatch.kernels.size import Kernels, Size

TORCH = "torch"  # the all-to-all of probes.ranks.wire, for every transport and size
FAMILIES = ("auto", TORCH, "deepep", "nccl-ep")


def libraries() -> dict[str, Kernels]:
    """Every module here that has a NAME, DeepEP's first; the others are what those share."""
    modules = modules_with("probes.dispatch.kernels", "NAME").values()
    return {module.NAME: cast("Kernels", module) for module in modules}


def choose(asked: str, transport: str, size: Size, device: str) -> tuple[str, tuple[str, ...]]:
    """The name of a library, or `torch`; and notes that say why others were left.

    BadInput where what was asked for cannot send this plan.
    """
    if asked == TORCH:
        return TORCH, ()
    reasons = []
    for name, kernels in libraries().items():
        if asked in ("auto", kernels.FAMILY) and kernels.sends(transport, size):
            why = "it needs GPUs" if device != "cuda" else kernels.available() or kernels.refuses(size)
            if not why:
                return name, (f"sent with {name}, written against {kernels.WRITTEN_AGAINST}",)
            reasons.append(f"{name}: {why}")
    if asked == "auto":
        return TORCH, tuple(f"not sent with {reason}" for reason in reasons) if device == "cuda" else ()
    why = "; ".join(reasons) or f"it has no kernels that send as transport '{transport}' on {size.gpus} GPUs"
    raise BadInput(f"--kernels {asked}: {why}; use --kernels torch")
