"""TensorRT-LLM (source of 2025-05 to 2026-09): the folder that EXPERT_STATISTIC_ITER_RANGE makes.

It holds rank*.safetensors and meta_info.json. Each rank counts its own tokens by "{iteration}_{layer}",
layers absolute. With a load balancer the counts are of slots: then a map is needed.
Shapes: W iterations, L layers, E experts or slots.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.base import BadInput, read_json
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import distinct_parts, missing_ranks
from planner.load.dumps.slots import whole_counts
from planner.load.dumps.tensors import read_safetensors
from planner.load.dumps.trtllm_beside import Counted, read_pairs, read_trace
from planner.load.profile import Counts
from planner.load.recording import Array, Recording, check_size
from planner.model import ModelSpec

META = "meta_info.json"
NO_META = f"no {META}, so the number of experts is taken from the counts"
COUNTS_NAME = re.compile(r"rank([0-9]{1,6})\.safetensors")
OTHER_NAME = re.compile(
    r"(cooccurrence_|token_selected_experts_)rank\d+\.safetensors"
    r"|rank\d+_raw\.safetensors|rank\d+_numtokens\.json"
)
KEY = re.compile(r"([0-9]{1,9})_([0-9]{1,6})")


@dataclass(frozen=True)
class _Meta:
    """What rank 0 writes beside the counts; None where it does not say."""

    num_experts: int | None = None
    top_k: int | None = None
    ep_size: int | None = None


def recognise(found: Opened, model: ModelSpec) -> bool:
    """A folder with rank files, or any file of such a folder by its name."""
    del model
    if found.kind == "folder":
        return any(COUNTS_NAME.fullmatch(entry.name) for entry in found.path.iterdir())
    name = found.path.name
    return found.kind == "name" and bool(
        name == META or COUNTS_NAME.fullmatch(name) or OTHER_NAME.fullmatch(name)
    )


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """One recording a folder: the ranks given (all of the folder, or the files named), summed."""
    files: dict[Path, list[Path]] = {}
    for found in dumps:
        folder = found.path if found.kind == "folder" else found.path.parent
        entries = sorted(found.path.iterdir()) if found.kind == "folder" else [found.path]
        files.setdefault(folder, []).extend(entry for entry in entries if COUNTS_NAME.fullmatch(entry.name))
    recordings = []
    for folder, paths in files.items():
        if not paths:
            only = f"of TensorRT-LLM's statistics only {dumps[0].path.name} was given"
            raise BadInput(f"{folder}: {only}; give the folder, or its rank*.safetensors")
        if len(set(paths)) < len(paths):
            raise BadInput(f"{folder}: a rank's file was given twice; give the folder alone")
        recordings.append(_folder(folder, paths, model, ranks))
    return recordings


def _folder(folder: Path, paths: Iterable[Path], model: ModelSpec, ranks: str | None) -> Recording:
    by_rank = {int(COUNTS_NAME.sub(r"\1", path.name)): (path, read_safetensors(path)) for path in paths}
    given = list(by_rank)
    kept, notes = distinct_parts([(str(path), _flat(arrays)) for path, arrays in by_rank.values()], ranks)
    by_rank = {given[place]: by_rank[given[place]] for place in kept}
    meta = _meta(folder, model)
    counts = _summed(folder, list(by_rank.values()), meta)
    absent = missing_ranks(given, meta.ep_size)
    about = [absent, counts.gaps, None if meta.num_experts else NO_META]
    notes += [f"{folder}: {note}" for note in about if note]
    traced = read_trace(folder, by_rank, counts)
    values, lengths = traced if isinstance(traced, tuple) else (counts.counts_WLE, None)
    paired = read_pairs(folder, by_rank, counts) if lengths is None else None
    notes += [note for note in (traced, paired) if isinstance(note, str)]
    return Recording(
        str(folder),
        values,
        is_trace=lengths is not None,
        layer_ids=tuple(counts.layers),
        sequence_lengths=lengths,
        window_names=tuple(map(str, counts.iterations)),
        window_unit="iteration",
        together_LEE=None if isinstance(paired, str) else paired,
        notes=tuple(notes),
    )


def _summed(folder: Path, parts: Sequence[tuple[Path, Mapping[str, Array]]], meta: _Meta) -> Counted:
    """The counts over all ranks; what no rank recorded is 0."""
    keys = {_key(path, name) for path, arrays in parts for name in arrays}
    if not keys:
        raise BadInput(f"{folder}: the rank files hold no counts; was the iteration range reached?")
    iterations, layers = sorted({iteration for iteration, _ in keys}), sorted({layer for _, layer in keys})
    width = meta.num_experts or next(counts_E.size for _, arrays in parts for counts_E in arrays.values())
    check_size(str(folder), len(iterations), len(layers), width)
    counts_WLE: Counts = np.zeros((len(iterations), len(layers), width), dtype=np.int64)
    place_of = {number: place for place, number in enumerate(iterations)}
    row_of = {layer: row for row, layer in enumerate(layers)}
    for path, arrays in parts:
        for name, counts_E in arrays.items():
            iteration, layer = _key(path, name)
            counts_WLE[place_of[iteration], row_of[layer]] += _row(path, name, counts_E, width)
    return Counted(counts_WLE, iterations, layers, missing=len(iterations) * len(layers) - len(keys))


def _meta(folder: Path, model: ModelSpec) -> _Meta:
    path = folder / META
    if not path.is_file():
        return _Meta()
    value = read_json(path)
    if not isinstance(value, dict):
        got = type(value).__name__
        raise BadInput(f"{path}: expected a mapping with num_experts and num_experts_per_token; got {got}")
    numbers = [value.get(key) for key in ("num_experts", "num_experts_per_token", "ep_size")]
    given = [number for number in numbers if number is not None]
    if any(type(number) is not int or not 0 < number < 1 << 20 for number in given):
        raise BadInput(
            f"{path}: num_experts, num_experts_per_token and ep_size must be whole numbers from 1; "
            f"got {str(numbers)[:80]}"
        )
    meta = _Meta(*numbers)
    if meta.top_k is not None and meta.top_k != model.top_k:
        raise BadInput(
            f"{path}: {meta.top_k} experts a token, but {model.name} chooses {model.top_k}; "
            "the folder was recorded on another model"
        )
    return meta


def _key(path: Path, name: str) -> tuple[int, int]:
    match = KEY.fullmatch(name)
    if match is None:
        raise BadInput(
            f"{path}: the key {name[:40]!r} is not iteration_layer; the file is no expert statistic"
        )
    return int(match[1]), int(match[2])


def _row(path: Path, name: str, counts_E: Array, width: int) -> Counts:
    if counts_E.shape != (width,):
        shape = f"{name} has shape {list(counts_E.shape)}"
        raise BadInput(f"{path}: {shape}; expected [{width}], one count for each expert or slot")
    layer = _key(path, name)[1]
    row_E: Counts = whole_counts(counts_E[None, None], (layer,), f"{path}: {name}")[0, 0]
    return row_E


def _flat(arrays: Mapping[str, Array]) -> Any:
    """Every count of a rank in order of key, so that ranks can be compared."""
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)]) if arrays else np.zeros(0)
