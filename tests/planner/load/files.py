"""The model that written load files are of, and how a test writes one (the fixture `save`)."""

from collections.abc import Callable
from pathlib import Path

from planner.model import ModelSpec

Saver = Callable[..., Path]


def model(
    layers: int = 3, experts: int = 4, top_k: int = 2, dense: int = 1, draft: int = 0, name: str = "small"
) -> ModelSpec:
    """A model whose first `dense` layers hold no experts."""
    placed, drafts = tuple(range(dense, layers)), tuple(range(layers, layers + draft))
    return ModelSpec(name, "test", layers, placed, experts, top_k, 8, 8, 8, "bf16", "by hand", drafts)
