"""Plain tensors of counts saved by PyTorch: what DeepSeek's EPLB and vllm-ascend's offline planner take.

vLLM's load window, saved by hand, is one too.
Shapes: W windows, L layers, E experts or slots.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.load.arrays import COUNTS_NAMES
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import distinct_counts
from planner.load.recording import Array, Recording, with_windows
from planner.model import ModelSpec

NAMES = (*COUNTS_NAMES, "weight", "workload", "expert_load", "expert_load_window", "physical_count")


def recognise(found: Opened, model: ModelSpec) -> bool:
    """Any PyTorch file that no engine's own reader knows."""
    del model
    return found.kind == "torch" and not found.holds("logical_count", "records")


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """One recording a file; its columns are experts, or slots where a map is given for them."""
    del model
    return [
        Recording(str(found.path), counts, notes=notes)
        for found, counts, notes in distinct_counts(dumps, _counts, ranks)
    ]


def _counts(found: Opened) -> Array:
    value = found.value
    if isinstance(value, dict):
        value = next((value[name] for name in NAMES if name in value), None)
    if isinstance(value, list):
        value = _stacked(value)
    if not isinstance(value, np.ndarray) or value.ndim not in (2, 3) or not value.size:
        raise BadInput(
            f"{found.path}: holds {_held(found.value)}; "
            "expected a tensor of counts [layer, expert] or [window, layer, expert], "
            f"alone or under one of {', '.join(NAMES)}, or a dump of SGLang's recorder"
        )
    return with_windows(value)


def _stacked(rows: list[Any]) -> Array | None:
    """A list of tensors of one shape as one array; None where it is anything else."""
    arrays = [row for row in rows if isinstance(row, np.ndarray)]
    alike = len(arrays) == len(rows) and len({row.shape for row in arrays}) == 1
    return np.stack(arrays) if alike else None


def _held(value: object) -> str:
    """What the file holds instead of counts."""
    if isinstance(value, dict):
        return f"the keys {', '.join(map(repr, list(value)[:5]))}"[:120]
    if isinstance(value, np.ndarray):
        return f"a tensor of shape {list(value.shape)}"
    return f"a {type(value).__name__}"
