"""From the raw rows of an nccl-tests run to measured facts. Pure.

Rows that contradict themselves are left out, and it is said why.
"""

from collections import Counter

from probes.base.facts import MeasureFacts, Sample
from probes.measure.busbw import bus_factor
from probes.measure.nccl_collective import collective_of
from probes.measure.nccl_ranks import groups_of, ranks_of
from probes.measure.nccl_table import Half, Row, Table


def facts_of(table: Table) -> MeasureFacts:
    """The facts of one run; `samples` is empty where no row can be believed."""
    collective, unknown = collective_of(table)
    ranks, remarks = ranks_of(table, collective)
    groups, scope, more = groups_of(table.devices, ranks)
    devices = sorted(table.devices, key=lambda device: device.rank)
    complete = len(devices) == ranks and all(device.rank == at for at, device in enumerate(devices))
    if not complete:
        named = f"names {len(devices)} of {ranks or 'an unknown number of'} ranks"
        unknown = (*unknown, f"the host of each rank (the list of devices {named})")
    samples, dropped = _samples(table.rows, collective, ranks // groups)
    return MeasureFacts(
        source=table.source,
        kind="nccl-tests",
        collective=collective,
        ranks=ranks,
        hosts=tuple(device.host for device in devices) if complete else (),
        gpu_names=tuple(dict.fromkeys(device.gpu for device in table.devices if device.gpu)),
        scope=scope,
        groups=groups,
        samples=samples,
        average_busbw_bytes_per_s=table.average_busbw_bytes_per_s,
        unknown=unknown,
        warnings=tuple(dict.fromkeys([*table.warnings, *remarks, *more, *dropped])),
        date=table.date,
    )


def _samples(rows: tuple[Row, ...], collective: str, ranks: int) -> tuple[tuple[Sample, ...], list[str]]:
    factor = bus_factor(collective, ranks)
    samples, reasons = [], Counter[str]()
    first: dict[str, str] = {}
    pairs = [(row, half) for row in rows for half in row.halves]
    for row, half in pairs:
        reason = _doubt(row, half, factor)
        if reason:
            reasons[reason] += 1
            first.setdefault(reason, f"{row.where}, size {row.size}")
        else:
            samples.append(_sample(row, half, factor))
    return tuple(samples), [
        f"{first[reason]}{_others(count)}: not used: {reason}" for reason, count in reasons.items()
    ]


def _sample(row: Row, half: Half, factor: float | None) -> Sample:
    algbw, busbw = half.algbw_bytes_per_s, half.busbw_bytes_per_s
    wire = busbw if factor is None else row.size / half.seconds * factor
    return Sample(row.size, half.seconds, algbw, busbw, wire, half.in_place)


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
        differ = "busbw is not what algbw and the number of ranks give"
        return f"{differ}; the row is damaged, or the number of ranks is wrong"
    return None
