"""From the raw rows of an nccl-tests run to measured facts: what collective it was, over how many ranks, and which rows can be believed. Pure.

The tool does not print the number of ranks. It follows from the list of devices (often cut), from size / (count · element) where the ranks share one
buffer, and from busbw / algbw of an all-reduce; where these contradict each other the facts say so.
"""

from collections import Counter
from dataclasses import dataclass

from probes.base.facts import MeasureFacts, Sample
from probes.measure.busbw import COLLECTIVES, bus_factor

ELEMENT_BYTES = {
    "int8": 1,
    "char": 1,
    "uint8": 1,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "half": 2,
    "float16": 2,
    "bfloat16": 2,
}
ELEMENT_BYTES |= {
    "int": 4,
    "int32": 4,
    "uint32": 4,
    "float": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "double": 8,
    "float64": 8,
}
_MOST_RANKS = 1 << 20
_SUMS = ("sum", "prod", "max", "min", "avg", "mulsum")
_SPLIT_BUFFER = (
    "alltoall",
    "allgather",
    "reducescatter",
    "gather",
    "scatter",
    "hypercube",
)  # count is what one rank has of size


@dataclass(frozen=True)
class Half:
    """One measurement of a row, as printed. `wrong` is a count, 'N/A', or an error of old versions like '2e-07'."""

    in_place: bool
    seconds: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    wrong: str


@dataclass(frozen=True)
class Row:
    where: str  # 'line 12'
    size: int
    count: int
    dtype: str
    redop: str
    halves: tuple[Half, ...]


@dataclass(frozen=True)
class Device:
    rank: int
    group: int
    host: str
    gpu: str
    index: int


@dataclass(frozen=True)
class Table:
    """One run as it was printed. `name` is the collective where the output says it; `hint` the file's name."""

    source: str
    hint: str
    name: str | None = None
    rows: tuple[Row, ...] = ()
    devices: tuple[Device, ...] = ()
    average_busbw_bytes_per_s: float | None = None
    date: str | None = None
    warnings: tuple[str, ...] = ()


def facts_of(table: Table) -> MeasureFacts:
    """The facts of one run. Rows that contradict themselves are left out with a warning; `samples` is empty where none is left."""
    collective, unknown = _collective(table)
    ranks, remarks = _ranks(table, collective)
    groups, scope, more = _groups(table.devices, ranks)
    warnings = [*table.warnings, *remarks, *more]
    listed = tuple(device.host for device in sorted(table.devices, key=lambda device: device.rank))
    if len(listed) != ranks or sorted(device.rank for device in table.devices) != list(range(ranks)):
        listed = ()
        unknown = (
            *unknown,
            f"the host of each rank (the list of devices names {len(table.devices)} of {ranks or 'an unknown number of'} ranks)",
        )
    samples, dropped = _samples(table.rows, collective, ranks // groups)
    return MeasureFacts(
        source=table.source,
        kind="nccl-tests",
        collective=collective,
        ranks=ranks,
        hosts=listed,
        gpu_names=tuple(dict.fromkeys(device.gpu for device in table.devices if device.gpu)),
        scope=scope,
        groups=groups,
        samples=samples,
        average_busbw_bytes_per_s=table.average_busbw_bytes_per_s,
        unknown=unknown,
        warnings=tuple(dict.fromkeys([*warnings, *dropped])),
        date=table.date,
    )


def collective_in(text: str | None) -> str | None:
    """The collective that a program's or a file's name holds: 'alltoall' of './build/all_to_all_perf' or 'gb300-alltoall.txt'."""
    plain = (text or "").lower().replace("_", "").replace("-", "")
    if "alltoallv" in plain:
        return "alltoallv"
    return next((name for name in sorted(COLLECTIVES, key=len, reverse=True) if name in plain), None)


def _collective(table: Table) -> tuple[str, tuple[str, ...]]:
    """By the output's own word, by what the rows can only be, else by the file's name; else 'unknown' and the question."""
    named = collective_in(table.name) or _inferred(table.rows) or collective_in(table.hint)
    if named:
        return named, ()
    return "unknown", ("which collective this is; put it into the file's name, like run-alltoall.txt",)


def _inferred(rows: tuple[Row, ...]) -> str | None:
    full = [
        row for row in rows if row.size and row.count and row.dtype in ELEMENT_BYTES and len(row.halves) == 2
    ]
    if not full:
        return None
    split = all(row.size > row.count * ELEMENT_BYTES[row.dtype] for row in full)
    largest = max(full, key=lambda row: row.halves[0].busbw_bytes_per_s).halves[0]
    ratio = largest.busbw_bytes_per_s / largest.algbw_bytes_per_s if largest.algbw_bytes_per_s else 0.0
    if all(row.redop in _SUMS for row in full):
        return "reducescatter" if split else "allreduce" if ratio > 1.1 else None
    checked_once = all(row.halves[0].wrong.isdigit() and row.halves[1].wrong == "N/A" for row in full)
    return "alltoall" if split and checked_once and all(row.redop in ("none", "") for row in full) else None


def _ranks(table: Table, collective: str) -> tuple[int, list[str]]:
    """The number of ranks (0: nothing says it), and what a reader must know about how it was found."""
    listed = max((device.rank for device in table.devices), default=-1) + 1
    candidates, how = (
        _by_count(table.rows) if collective in _SPLIT_BUFFER else _by_ratio(table.rows, collective)
    )
    if candidates == {1}:
        alone = max(sum(device.rank == 0 for device in table.devices), 1)
        remedy = "build nccl-tests with MPI=1 and start it with the same MPI's launcher"
        return 1, [
            f"{alone} process{'es' if alone > 1 else ''} ran alone, each as rank 0 of 1, so nothing crossed a link; {remedy}"
        ]
    if listed and (
        not candidates or {listed, listed // len({device.group for device in table.devices})} & candidates
    ):
        return listed, []
    if len(candidates) == 1:
        (derived,) = candidates
        if not listed:
            return derived, [f"no list of devices; {how} says {derived} ranks"]
        taken = max(listed, derived)
        return taken, [
            f"the list of devices goes to rank {listed - 1}, {how} says {derived} ranks; {taken} are taken: check which is right"
        ]
    fits = f"; {how} fits any of {min(candidates)} to {max(candidates)}" if candidates else ""
    return listed, [f"nothing says for certain over how many ranks it ran{fits}"]


def _by_count(rows: tuple[Row, ...]) -> tuple[set[int], str]:
    ratios = {
        row.size / (row.count * ELEMENT_BYTES[row.dtype])
        for row in rows
        if row.count and row.dtype in ELEMENT_BYTES
    }
    whole = {int(ratio) for ratio in ratios if ratio == int(ratio) and 1 <= ratio <= _MOST_RANKS}
    return (whole if len(whole) == len(ratios) else set()), "size / (count x element)"


def _by_ratio(rows: tuple[Row, ...], collective: str) -> tuple[set[int], str]:
    """Numbers of ranks for which busbw / algbw of the fastest row comes out as printed, to two decimals."""
    how = "busbw / algbw"
    halves = [
        half
        for row in rows
        for half in row.halves
        if half.busbw_bytes_per_s > 0 and half.algbw_bytes_per_s > 0
    ]
    if collective != "allreduce" or not halves:
        return set(), how
    best = max(halves, key=lambda half: half.busbw_bytes_per_s)
    low, high = (
        (best.busbw_bytes_per_s + sign * 5e6) / (best.algbw_bytes_per_s - sign * 5e6) for sign in (-1, 1)
    )
    if not 0 < low <= high < 2:
        return set(), how
    first, last = 2 / (2 - low), 2 / (2 - high)  # 2·(n-1)/n = ratio
    return set(range(max(1, -int(-first // 1)), min(int(last), _MOST_RANKS) + 1)), how


def _groups(devices: tuple[Device, ...], ranks: int) -> tuple[int, str, list[str]]:
    """How NCCL_TESTS_SPLIT cut the ranks: one host each, the same GPU of each host, or otherwise."""
    members: dict[int, list[Device]] = {}
    for device in devices:
        members.setdefault(device.group, []).append(device)
    sizes = {len(group) for group in members.values()}
    if len(members) < 2:
        return 1, "all", []
    if len(sizes) != 1 or sum(map(len, members.values())) != ranks:
        return (
            1,
            "all",
            [
                f"the list of devices has {len(members)} groups that are not alike or not complete: this was not a run of all ranks together"
            ],
        )
    if all(len({device.host for device in group}) == 1 for group in members.values()):
        return len(members), "domain", []
    if all(
        len({device.host for device in group}) == len(group) and len({device.index for device in group}) == 1
        for group in members.values()
    ):
        return len(members), "rail", []
    return (
        len(members),
        "all",
        [f"the ranks were split into {len(members)} groups that are neither hosts nor rails"],
    )


def _samples(rows: tuple[Row, ...], collective: str, ranks: int) -> tuple[tuple[Sample, ...], list[str]]:
    factor = bus_factor(collective, ranks)
    samples, reasons = [], Counter[str]()
    first: dict[str, str] = {}
    for row in rows:
        for half in row.halves:
            reason = _doubt(row, half, factor)
            if reason:
                reasons[reason] += 1
                first.setdefault(reason, f"{row.where}, size {row.size}")
                continue
            algbw = row.size / half.seconds
            wire = algbw * factor if factor is not None else half.busbw_bytes_per_s
            samples.append(
                Sample(
                    row.size,
                    half.seconds,
                    half.algbw_bytes_per_s,
                    half.busbw_bytes_per_s,
                    wire,
                    half.in_place,
                )
            )
    return tuple(samples), [
        f"{first[reason]}{_others(count)}: not used: {reason}" for reason, count in reasons.items()
    ]


def _others(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""


def _doubt(row: Row, half: Half, factor: float | None) -> str | None:
    """Why a measurement cannot be believed."""
    if row.size == 0:
        return "nothing was sent"
    if half.wrong.isdigit() and int(half.wrong) > 0:
        return "wrong elements arrived (#wrong is not 0); this is a fault of the machine or of NCCL"
    if not half.seconds > 0:
        return "the time is not positive"
    algbw = row.size / half.seconds
    if abs(half.algbw_bytes_per_s - algbw) > 0.01 * algbw + 1e7:
        return "size / time is not the algbw of the same row; the row is damaged"
    if factor is not None and abs(half.busbw_bytes_per_s - factor * algbw) > 0.01 * algbw + 1e7:
        return "busbw is not what algbw and the number of ranks give; the row is damaged, or the number of ranks is wrong"
    return None
