"""RoutingTrace: what was recorded of a model's routing, checked.

It is written as the .npz that `moeplan load show` reads.

Shapes: L MoE layers, T tokens, K = top_k.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import LARGEST_FILE_BYTES, BadInput, write_atomic
from planner.model import ModelSpec

Ids = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class RoutingTrace:
    """The top-k logical expert ids of each token, sequence after sequence, of every MoE layer of `model`."""

    model: ModelSpec
    experts_LTK: Ids
    sequence_lengths: tuple[int, ...]
    source: str  # where it was recorded: a folder, a server
    phase: str  # prefill, or unknown where prompts and generated tokens are mixed
    notes: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        return int(self.experts_LTK.shape[1])

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "layers": list(self.model.moe_layer_ids),
            "experts": self.model.experts,
            "top_k": self.model.top_k,
            "sequences": len(self.sequence_lengths),
            "tokens": self.tokens,
            "phase": self.phase,
            "source": self.source,
            "notes": list(self.notes),
        }


def check_ids(ids_LTK: Ids, model: ModelSpec, where: str) -> Ids:
    """The ids of one sequence in the smallest unsigned type that holds them.

    BadInput where they cannot be a routing of `model`.
    """
    if ids_LTK.dtype.kind not in "iu":
        raise BadInput(f"{where}: expert ids are whole numbers; got an array of type {ids_LTK.dtype}")
    shape = ids_LTK.shape
    if ids_LTK.ndim != 3 or shape[::2] != (len(model.moe_layer_ids), model.top_k) or not shape[1]:
        layers = f"{model.name} has {len(model.moe_layer_ids)} MoE layers"
        chooses = f"chooses {model.top_k} experts a token: [layer, token, k]"
        raise BadInput(f"{where}: the routing has shape {list(shape)}; {layers} and {chooses}")
    outside = _first(ids_LTK, (ids_LTK < 0) | (ids_LTK >= model.experts), model)
    if outside:
        place, expert = outside
        known = f"{model.name} has the experts 0..{model.experts - 1}"
        why = "so this is another model, or ids of slots"
        raise BadInput(f"{where}: {place} has the expert id {expert}; {known}, {why}")
    sorted_LTK = np.sort(ids_LTK, axis=2)
    twice = _first(sorted_LTK, sorted_LTK[:, :, 1:] == sorted_LTK[:, :, :-1], model)
    if twice:
        place, expert = twice
        why = "so this array was read wrongly or its layer was not recorded"
        raise BadInput(
            f"{where}: {place} chooses expert {expert} twice; the ids of a token are distinct, {why}"
        )
    return ids_LTK.astype(np.min_scalar_type(model.experts - 1))


def _first(ids_LTK: Ids, faulty_LTK: npt.NDArray[np.bool_], model: ModelSpec) -> tuple[str, int] | None:
    """The place and the id of the first one that is faulty."""
    if not faulty_LTK.any():
        return None
    layer, token, k = (int(index) for index in np.argwhere(faulty_LTK)[0])
    return f"layer {model.moe_layer_ids[layer]}, token {token}", int(ids_LTK[layer, token, k])


def check_room(tokens: int, model: ModelSpec, where: str) -> None:
    """BadInput where a trace of that many tokens would be larger than any file we read."""
    size = tokens * len(model.moe_layer_ids) * model.top_k * np.min_scalar_type(model.experts - 1).itemsize
    if size > LARGEST_FILE_BYTES:
        large = f"{tokens:,} tokens make a trace of {size:,} bytes"
        more = f"more than the {LARGEST_FILE_BYTES:,} we read"
        raise BadInput(f"{where}: {large}, {more}; record fewer with --sequences")


def join(
    model: ModelSpec, sequences: Sequence[Ids], source: str, phase: str, notes: Sequence[str] = ()
) -> RoutingTrace:
    """The trace of several sequences [L, tokens, K] that `check_ids` has passed."""
    lengths = tuple(ids_LTK.shape[1] for ids_LTK in sequences)
    return RoutingTrace(model, np.concatenate(sequences, axis=1), lengths, source, phase, tuple(notes))


def write_trace(trace: RoutingTrace, path: Path) -> Path:
    """The written file: whole or not at all, and the same bytes for the same trace."""
    if path.suffix.lower() != ".npz":
        raise BadInput(f"{path}: a trace is written as .npz; name the file so")
    content = io.BytesIO()
    np.savez_compressed(
        content,
        topk_ids=trace.experts_LTK,
        seq_lens=np.array(trace.sequence_lengths, dtype=np.int64),
        layer_ids=np.array(trace.model.moe_layer_ids, dtype=np.int64),
        model=np.array(trace.model.name),
        source=np.array(f"recorded from {trace.source}"),
        phase=np.array(trace.phase),
        notes=np.array(trace.notes, dtype=np.str_),
    )
    return write_atomic(path, content.getvalue())
