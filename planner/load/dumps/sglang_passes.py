"""SGLang 0.5.23: per_pass and per_token dumps. Every rank writes a file of records; a forward pass is their sum over ranks, by slot, made logical here.

Shapes: F forward passes, L decoder layers, P slots, T tokens, K = top_k.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import distinct_parts, missing_ranks
from planner.load.dumps.slots import SlotMap, logical_counts, slot_map, whole_counts
from planner.load.formats import Array, Recording, check_size
from planner.load.profile import Counts
from planner.load.rows import spans
from planner.model import ModelSpec

MAP_KEY = "last_physical_to_logical_map"
PHASES = {1: "prefill", 2: "decode", 8: "prefill"}  # ForwardMode: EXTEND, DECODE, SPLIT_PREFILL


@dataclass(frozen=True, eq=False)
class _Record:
    """One forward pass as one rank saw it."""

    path: Path
    pass_id: int
    rank: int
    counts_LP: Counts
    slots_LTK: Array | None
    phase: str


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None = None) -> Recording:
    """All ranks' files as one recording, a window a forward pass: a trace where every record holds ids, else counts."""
    records = [_record(found.path, entry) for found in dumps for entry in _entries(found)]
    shapes = {record.counts_LP.shape for record in records}
    if len(shapes) > 1:
        raise BadInput(
            f"{records[0].path}: records have counts of shapes {', '.join(str(list(shape)) for shape in sorted(shapes))}; give one recording"
        )
    found_map = _common_map(dumps, model)
    totals = _totals_by_rank(records)
    kept, twins = distinct_parts(
        [(f"rank {rank} ({path})", total_LP) for rank, (path, total_LP) in totals.items()], ranks
    )
    left = {rank for place, rank in enumerate(totals) if place in kept}
    records = [record for record in records if record.rank in left]
    path = str(dumps[0].path) if len(dumps) == 1 else f"{dumps[0].path} and {len(dumps) - 1} more"
    notes = [*twins, *(f"{path}: {note}" for note in _notes(records, totals, found_map, model))]
    passes = sorted({record.pass_id for record in records})
    phases = {record.phase for record in records}
    common: dict[str, Any] = {
        "window_unit": "forward pass",
        "phase": phases.pop() if len(phases) == 1 else "unknown",
        "logical": True,
    }
    if all(record.slots_LTK is not None for record in records):
        traced = _trace(records, passes, found_map, model, path)
        if traced is not None:
            experts_LTK, lengths, dropped = traced
            notes += [f"{path}: {dropped} rows of ids are padding (-1); left out"] if dropped else []
            names = tuple(str(pass_id) for pass_id, length in zip(passes, lengths, strict=True) if length)
            filled = tuple(length for length in lengths if length)
            return Recording(
                path,
                experts_LTK,
                is_trace=True,
                layer_ids=model.moe_layer_ids,
                sequence_lengths=filled,
                window_names=names,
                notes=tuple(notes),
                **common,
            )
    tokens_FLE = _counts(records, passes, found_map, model, path)
    return Recording(path, tokens_FLE, window_names=tuple(map(str, passes)), notes=tuple(notes), **common)


def _entries(found: Opened) -> list[Any]:
    entries = found.value["records"]
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{found.path}: 'records' is empty; start recording, serve requests, then dump")
    return entries


def _record(path: Path, entry: Any) -> _Record:
    counts = entry.get("global_physical_count") if isinstance(entry, dict) else None
    if not isinstance(counts, np.ndarray) or counts.ndim != 2 or not counts.size:
        raise BadInput(
            f"{path}: a record holds no 'global_physical_count' [layer, slot]; the file is no per_pass or per_token dump of SGLang"
        )
    pass_id, rank, slots = entry.get("forward_pass_id"), entry.get("rank"), entry.get("topk_ids_of_layer")
    if not all(type(number) is int and 0 <= number < 1 << 40 for number in (pass_id, rank)):
        raise BadInput(
            f"{path}: a record has forward_pass_id {str(pass_id)[:40]!r} and rank {str(rank)[:40]!r}; expected two whole numbers"
        )
    if slots is not None and (
        not isinstance(slots, np.ndarray)
        or slots.ndim != 3
        or slots.dtype.kind != "i"
        or len(slots) != len(counts)
    ):
        raise BadInput(
            f"{path}: pass {pass_id}: 'topk_ids_of_layer' is not a tensor of whole numbers [layer, token, k]"
        )
    counts_LP = whole_counts(counts[None], range(len(counts)), f"{path}: pass {pass_id}")[0]
    mode = entry.get("forward_mode")
    return _Record(
        path,
        pass_id,
        rank,
        counts_LP,
        slots,
        PHASES.get(mode, "unknown") if isinstance(mode, int) else "unknown",
    )


def _common_map(dumps: Sequence[Opened], model: ModelSpec) -> SlotMap:
    maps = []
    for found in dumps:
        if MAP_KEY not in found.value:
            raise BadInput(
                f"{found.path}: the counts are of slots and '{MAP_KEY}' is missing, so their experts are not known"
            )
        maps.append(slot_map(found.value[MAP_KEY], str(found.path), model.experts))
    first = maps[0]
    for other in maps[1:]:
        same = other.slots == first.slots and other.rows.keys() == first.rows.keys()
        if not same or any((other.rows[layer] != first.rows[layer]).any() for layer in first.rows):
            raise BadInput(
                f"{first.source} and {other.source} were dumped under different maps; the files are of two recordings: give those of one"
            )
    return first


def _totals_by_rank(records: Sequence[_Record]) -> dict[int, tuple[Path, Counts]]:
    """Each rank's file and counts over all passes. BadInput where two files hold the same pass of the same rank."""
    totals: dict[int, tuple[Path, Counts]] = {}
    file_of: dict[tuple[int, int], Path] = {}
    for record in records:
        first = file_of.setdefault((record.rank, record.pass_id), record.path)
        if first != record.path:
            raise BadInput(
                f"{first} and {record.path} both hold pass {record.pass_id} of rank {record.rank}: one dump was given twice, or two recordings"
            )
        _, total_LP = totals.get(record.rank, (first, np.zeros_like(record.counts_LP)))
        totals[record.rank] = (record.path, total_LP + record.counts_LP)
    return dict(sorted(totals.items()))


def _notes(
    records: Sequence[_Record], totals: dict[int, tuple[Path, Counts]], found_map: SlotMap, model: ModelSpec
) -> list[str]:
    notes = [note] if (note := missing_ranks(list(totals))) else []
    given = len({record.rank for record in records})
    ranks_by_pass = Counter(pass_id for pass_id, _ in {(record.pass_id, record.rank) for record in records})
    torn = sorted(pass_id for pass_id, ranks in ranks_by_pass.items() if ranks < given)
    if torn:
        notes.append(
            f"passes {spans(torn)[:80]} were not recorded by every rank given: their counts are partial"
        )
    times = Counter((record.rank, record.pass_id) for record in records)
    if max(times.values()) > 1:
        notes.append(
            "a rank recorded a pass more than once (a draft model numbers its own passes); they are summed"
        )
    never = np.flatnonzero(
        ~np.sum([total_LP for _, total_LP in totals.values()], axis=0).any(axis=0)
    ).tolist()
    if never:
        notes.append(
            f"slots {spans(never)[:80]} have no count in any layer: the file of the rank that owns them may be missing"
        )
    if found_map.slots > model.experts:
        notes.append(
            "slots were made experts by the map at the time of the dump; if the engine rebalanced while it recorded, earlier passes are wrong"
        )
    return notes


def _counts(
    records: Sequence[_Record], passes: list[int], found_map: SlotMap, model: ModelSpec, path: str
) -> Counts:
    shape = (len(passes), *records[0].counts_LP.shape)
    check_size(path, *shape)
    counts_FLP = np.zeros(shape, dtype=np.int64)
    row_of = {pass_id: row for row, pass_id in enumerate(passes)}
    for record in records:
        counts_FLP[row_of[record.pass_id]] += record.counts_LP
    return logical_counts(counts_FLP, range(shape[1]), path, found_map, model.experts)


def _trace(
    records: Sequence[_Record], passes: list[int], found_map: SlotMap, model: ModelSpec, path: str
) -> tuple[Array, tuple[int, ...], int] | None:
    """(experts_LTK of the MoE layers, tokens of each pass, padded rows left out); None where no token is left.

    The engine's table is 8 wide whatever top_k is; columns past top_k must be empty.
    """
    parts, lengths, dropped = [], dict.fromkeys(passes, 0), 0
    for record in sorted(records, key=lambda record: (record.pass_id, record.rank)):
        assert record.slots_LTK is not None
        slots_LTK = record.slots_LTK
        if len(slots_LTK) != model.layers:
            raise BadInput(
                f"{record.path}: {len(slots_LTK)} layers, but {model.name} has {model.layers} decoder layers, each of which SGLang gives a row"
            )
        if slots_LTK.shape[2] < model.top_k or (slots_LTK[:, :, model.top_k :] >= 0).any():
            raise BadInput(
                f"{record.path}: pass {record.pass_id}: tokens do not have {model.top_k} ids as {model.name} does (shared experts fused, or another)"
            )
        routed_LTK = slots_LTK[list(model.moe_layer_ids), :, : model.top_k]
        filled_T = (routed_LTK >= 0).all(axis=(0, 2))
        dropped += int((~filled_T).sum())
        lengths[record.pass_id] += int(filled_T.sum())
        routed_LTK = routed_LTK[:, filled_T]
        if (routed_LTK >= found_map.slots).any():
            raise BadInput(
                f"{record.path}: pass {record.pass_id}: slot {routed_LTK.max()} of {found_map.slots}; fused shared experts are not slots of the map"
            )
        absent = [layer for layer in model.moe_layer_ids if layer not in found_map.rows]
        if absent:
            raise BadInput(f"{path}: layer {absent[0]} has no row in the dump's map")
        parts.append(
            np.stack(
                [
                    found_map.rows[layer][slots_TK]
                    for layer, slots_TK in zip(model.moe_layer_ids, routed_LTK, strict=True)
                ]
            )
        )
    joined_LTK = np.concatenate(parts, axis=1)
    return (joined_LTK, tuple(lengths.values()), dropped) if joined_LTK.shape[1] else None
