"""SGLang 0.5.23: per_pass and per_token dumps as one recording, a window a forward pass.

Every rank writes a file of records; a forward pass is their sum over ranks, by slot, made logical here.
Shapes: F forward passes, L decoder layers, E experts, P slots.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.base import BadInput
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import distinct_parts, joint_name
from planner.load.dumps.sglang_records import Record, gaps, read_records, totals_by_rank
from planner.load.dumps.sglang_trace import PassTrace, read_trace
from planner.load.dumps.slots import SlotMap, logical_counts, slot_map
from planner.load.profile import Counts
from planner.load.recording import Recording, check_size
from planner.model import ModelSpec

MAP_KEY = "last_physical_to_logical_map"
REBALANCED = (
    "slots were made experts by the map at the time of the dump; "
    "if the engine rebalanced while it recorded, earlier passes are wrong"
)


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None = None) -> Recording:
    """All ranks' files as one recording: a trace where every record holds ids, else counts."""
    records = read_records(dumps)
    found_map = _common_map(dumps, model)
    totals = totals_by_rank(records)
    by_rank = [(f"rank {rank} ({path})", total_LP) for rank, (path, total_LP) in totals.items()]
    kept, notes = distinct_parts(by_rank, ranks)
    used = [rank for place, rank in enumerate(totals) if place in kept]
    records = [record for record in records if record.rank in used]
    path = joint_name([found.path for found in dumps])
    about = gaps(records, totals) + ([REBALANCED] if found_map.slots > model.experts else [])
    trace = read_trace(records, found_map, model, path)
    if trace is not None and trace.dropped:
        about.append(f"{trace.dropped} rows of ids are padding (-1); left out")
    notes += [f"{path}: {note}" for note in about]
    recording = _traced(trace, path, model) if trace else _counted(records, path, found_map, model)
    phases = {record.phase for record in records}
    phase = phases.pop() if len(phases) == 1 else "unknown"
    return replace(recording, window_unit="forward pass", phase=phase, notes=tuple(notes), logical=True)


def _common_map(dumps: Sequence[Opened], model: ModelSpec) -> SlotMap:
    maps = []
    for found in dumps:
        if MAP_KEY not in found.value:
            raise BadInput(
                f"{found.path}: the counts are of slots and '{MAP_KEY}' is missing, "
                "so their experts are not known"
            )
        maps.append(slot_map(found.value[MAP_KEY], str(found.path), model.experts))
    first = maps[0]
    for other in maps[1:]:
        same = other.slots == first.slots and other.rows.keys() == first.rows.keys()
        if not same or any((other.rows[layer] != first.rows[layer]).any() for layer in first.rows):
            raise BadInput(
                f"{first.source} and {other.source} were dumped under different maps; "
                "the files are of two recordings: give those of one"
            )
    return first


def _traced(trace: PassTrace, path: str, model: ModelSpec) -> Recording:
    return Recording(
        path,
        trace.experts_LTK,
        is_trace=True,
        layer_ids=model.moe_layer_ids,
        sequence_lengths=tuple(trace.lengths.values()),
        window_names=tuple(map(str, trace.lengths)),
    )


def _counted(records: Sequence[Record], path: str, found_map: SlotMap, model: ModelSpec) -> Recording:
    passes = sorted({record.pass_id for record in records})
    shape = (len(passes), *records[0].counts_LP.shape)
    check_size(path, *shape)
    counts_FLP: Counts = np.zeros(shape, dtype=np.int64)
    row_of = {pass_id: row for row, pass_id in enumerate(passes)}
    for record in records:
        counts_FLP[row_of[record.pass_id]] += record.counts_LP
    tokens_FLE = logical_counts(counts_FLP, range(shape[1]), path, found_map, model.experts)
    return Recording(path, tokens_FLE, window_names=tuple(map(str, passes)))
