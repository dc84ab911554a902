"""SGLang 0.5.23: the records of per_pass and per_token dumps, each one forward pass as one rank saw it.

Shapes: L decoder layers, P slots, T tokens, K = top_k.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.base import BadInput
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import missing_ranks
from planner.load.dumps.slots import whole_counts
from planner.load.profile import Counts
from planner.load.recording import Array
from planner.load.spans import spans

PHASES = {1: "prefill", 2: "decode", 8: "prefill"}  # ForwardMode: EXTEND, DECODE, SPLIT_PREFILL


@dataclass(frozen=True, eq=False)
class Record:
    """One forward pass as one rank saw it."""

    path: Path
    pass_id: int
    rank: int
    counts_LP: Counts
    slots_LTK: Array | None
    phase: str


def read_records(dumps: Sequence[Opened]) -> list[Record]:
    """All records of all files. BadInput where they are not of one shape."""
    records = [_record(found.path, entry) for found in dumps for entry in _entries(found)]
    shapes = sorted({record.counts_LP.shape for record in records})
    if len(shapes) > 1:
        several = ", ".join(str(list(shape)) for shape in shapes)
        raise BadInput(f"{records[0].path}: records have counts of shapes {several}; give one recording")
    return records


def _entries(found: Opened) -> list[Any]:
    entries = found.value["records"]
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{found.path}: 'records' is empty; start recording, serve requests, then dump")
    return entries


def _record(path: Path, entry: Any) -> Record:
    counts = entry.get("global_physical_count") if isinstance(entry, dict) else None
    if not isinstance(counts, np.ndarray) or counts.ndim != 2 or not counts.size:
        raise BadInput(
            f"{path}: a record holds no 'global_physical_count' [layer, slot]; "
            "the file is no per_pass or per_token dump of SGLang"
        )
    pass_id, rank, slots = entry.get("forward_pass_id"), entry.get("rank"), entry.get("topk_ids_of_layer")
    if not all(type(number) is int and 0 <= number < 1 << 40 for number in (pass_id, rank)):
        given = f"forward_pass_id {str(pass_id)[:40]!r} and rank {str(rank)[:40]!r}"
        raise BadInput(f"{path}: a record has {given}; expected two whole numbers")
    where = f"{path}: pass {pass_id}"
    if slots is not None and not _are_ids(slots, len(counts)):
        raise BadInput(f"{where}: 'topk_ids_of_layer' is not a tensor of whole numbers [layer, token, k]")
    counts_LP = whole_counts(counts[None], range(len(counts)), where)[0]
    mode = entry.get("forward_mode")
    phase = PHASES.get(mode, "unknown") if isinstance(mode, int) else "unknown"
    return Record(path, pass_id, rank, counts_LP, slots, phase)


def _are_ids(slots: object, layers: int) -> bool:
    if not isinstance(slots, np.ndarray) or slots.ndim != 3:
        return False
    return slots.dtype.kind == "i" and len(slots) == layers


def totals_by_rank(records: Sequence[Record]) -> dict[int, tuple[Path, Counts]]:
    """Each rank's file and counts over all passes. BadInput where two files hold a rank's same pass."""
    totals: dict[int, tuple[Path, Counts]] = {}
    file_of: dict[tuple[int, int], Path] = {}
    for record in records:
        first = file_of.setdefault((record.rank, record.pass_id), record.path)
        if first != record.path:
            raise BadInput(
                f"{first} and {record.path} both hold pass {record.pass_id} of rank {record.rank}: "
                "one dump was given twice, or two recordings"
            )
        _, total_LP = totals.get(record.rank, (first, np.zeros_like(record.counts_LP)))
        totals[record.rank] = (record.path, total_LP + record.counts_LP)
    return dict(sorted(totals.items()))


def _torn_passes(pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Passes that some rank did not record, of the (rank, pass) that were."""
    ranks_of: dict[int, set[int]] = defaultdict(set)
    for rank, pass_id in pairs:
        ranks_of[pass_id].add(rank)
    everyone = set().union(*ranks_of.values())
    return sorted(pass_id for pass_id, ranks in ranks_of.items() if ranks != everyone)


def gaps(records: Sequence[Record], totals: dict[int, tuple[Path, Counts]]) -> list[str]:
    """Notes on ranks, passes and slots without counts, and on passes that one rank counted twice."""
    notes = [note] if (note := missing_ranks(list(totals))) else []
    times = Counter((record.rank, record.pass_id) for record in records)
    if torn := _torn_passes(times):
        notes.append(
            f"passes {spans(torn)[:80]} were not recorded by every rank given: their counts are partial"
        )
    if max(times.values()) > 1:
        notes.append(
            "a rank recorded a pass more than once (a draft model numbers its own passes); they are summed"
        )
    counted_P = np.sum([total_LP for _, total_LP in totals.values()], axis=0).any(axis=0)
    never = np.flatnonzero(~counted_P).tolist()
    if never:
        notes.append(
            f"slots {spans(never)[:80]} have no count in any layer: "
            "the file of the rank that owns them may be missing"
        )
    return notes
