"""Which collective an nccl-tests run was. Pure."""

from probes.measure.busbw import COLLECTIVES
from probes.measure.nccl_table import ELEMENT_BYTES, Row, Table

_SUMS = ("sum", "prod", "max", "min", "avg", "mulsum")


def collective_in(text: str | None) -> str | None:
    """The collective that a program's or a file's name holds.

    >>> collective_in("./build/all_to_all_perf"), collective_in("gb300-alltoall.txt")
    ('alltoall', 'alltoall')
    """
    plain = (text or "").lower().replace("_", "").replace("-", "")
    if "alltoallv" in plain:
        return "alltoallv"
    return next((name for name in sorted(COLLECTIVES, key=len, reverse=True) if name in plain), None)


def collective_of(table: Table) -> tuple[str, tuple[str, ...]]:
    """By the output's own word, by what the rows can only be, else by the file's name.

    Else 'unknown' and the question.
    """
    named = collective_in(table.name) or _inferred(table.rows) or collective_in(table.hint)
    if named:
        return named, ()
    return "unknown", ("which collective this is; put it into the file's name, like run-alltoall.txt",)


def _inferred(rows: tuple[Row, ...]) -> str | None:
    sized = [row for row in rows if row.size and row.count and row.dtype in ELEMENT_BYTES]
    full = [row for row in sized if len(row.halves) == 2]
    if not full:
        return None
    split = all(row.size > row.count * ELEMENT_BYTES[row.dtype] for row in full)
    largest = max(full, key=lambda row: row.halves[0].busbw_bytes_per_s).halves[0]
    ratio = largest.busbw_bytes_per_s / largest.algbw_bytes_per_s if largest.algbw_bytes_per_s else 0.0
    if all(row.redop in _SUMS for row in full):
        return "reducescatter" if split else "allreduce" if ratio > 1.1 else None
    checked_once = all(row.halves[0].wrong.isdigit() and row.halves[1].wrong == "N/A" for row in full)
    return "alltoall" if split and checked_once and all(row.redop in ("none", "") for row in full) else None
