"""Plain tensors of counts saved by PyTorch: what DeepSeek's EPLB and vllm-ascend's offline planner take, and vLLM's load window saved by hand.

Shapes: W windows, L layers, E experts or slots.
"""

from collections.abc import Sequence

import numpy as np

from planner.base import BadInput
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import distinct_parts
from planner.load.formats import COUNTS_NAMES, Array, Recording
from planner.model import ModelSpec

NAMES = (*COUNTS_NAMES, "weight", "workload", "expert_load", "expert_load_window", "physical_count")


def recognise(found: Opened, model: ModelSpec) -> bool:
    """Any PyTorch file that no engine's own reader knows."""
    del model
    return found.kind == "torch" and not (
        isinstance(found.value, dict) and {"logical_count", "records"} & set(found.value)
    )


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """One recording a file; its columns are experts, or slots where a map is given for them."""
    del model
    counts = [(str(found.path), _counts(found)) for found in dumps]
    kept, notes = distinct_parts(counts, ranks)
    return [Recording(*counts[place], notes=tuple(notes) if place == kept[0] else ()) for place in kept]


def _counts(found: Opened) -> Array:
    value = found.value
    if isinstance(value, dict):
        value = next((value[name] for name in NAMES if name in value), None)
    if isinstance(value, list):
        arrays = [row for row in value if isinstance(row, np.ndarray)]
        value = (
            np.stack(arrays)
            if len(arrays) == len(value) and len({row.shape for row in arrays}) == 1
            else None
        )
    if not isinstance(value, np.ndarray) or value.ndim not in (2, 3) or not value.size:
        held = (
            f"the keys {', '.join(map(repr, list(found.value)[:5]))}"[:120]
            if isinstance(found.value, dict)
            else _kind(found.value)
        )
        raise BadInput(
            f"{found.path}: holds {held}; expected a tensor of counts [layer, expert] or [window, layer, expert], "
            f"alone or under one of {', '.join(NAMES)}, or a dump of SGLang's recorder"
        )
    return value[None] if value.ndim == 2 else value


def _kind(value: object) -> str:
    return (
        f"a tensor of shape {list(value.shape)}"
        if isinstance(value, np.ndarray)
        else f"a {type(value).__name__}"
    )
