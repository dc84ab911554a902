"""What the ranks of a validation run saw, set against the prediction.

Shapes: L layers that were run, G GPUs, E experts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.job import Counts, DispatchJob, Prediction, predict

PHASES = ("dispatch", "compute", "combine")
CPU_NOTE = "ran on the CPU: this checks the plan's routing and volume, not the speed of GPUs"


@dataclass(frozen=True)
class Seen:
    """What one rank saw in one layer under one placement. Bytes are by peer; the own rank's entry is local copies."""

    rank: int
    side: str  # plan or baseline
    row: int  # of the job's layers
    sent_bytes_G: list[int]
    received_bytes_G: list[int]
    sent_back_bytes_G: list[int]  # combine
    received_back_bytes_G: list[int]
    received: list[list[int]]  # source, expert, assignments
    misplaced: str  # the first assignment that came to a slot which does not hold its expert
    wrong_sums: list[str]  # passes in which a token came back wrong
    seconds: dict[str, list[float]]  # by phase, one for each repeat


@dataclass(frozen=True)
class Check:
    """One thing that had to hold. `detail` is what was compared, or the first place where it failed."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, eq=False)
class DispatchReport:
    """The outcome. The mappings are keyed by side (plan, baseline); bytes are of dispatch, summed over layers, the diagonal being local copies."""

    checks: tuple[Check, ...]
    layer_ids: tuple[int, ...]
    seconds_L: Mapping[
        str, Mapping[str, npt.NDArray[np.float64]]
    ]  # side -> phase -> slowest rank, median over repeats
    bytes_GG: Mapping[str, Counts]
    predicted_bytes_GG: Mapping[str, Counts]
    device: str
    rank: int  # 0 where this process is the one that speaks
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def judge(
    job: DispatchJob, seen: Sequence[Seen], device: str, rank: int, notes: Sequence[str]
) -> DispatchReport:
    """Every rank's account of every layer and side against the prediction made here."""
    by_key = {(entry.side, entry.row, entry.rank): entry for entry in seen}
    missing = [
        (side, row, rank)
        for side in job.sides
        for row in range(len(job.layer_ids))
        for rank in range(job.gpus)
        if (side, row, rank) not in by_key
    ]
    if missing or len(by_key) != len(seen):
        raise RuntimeError(f"the ranks' results are incomplete or double: {missing[:3]}")
    cells = [
        _Cell(
            f"layer {layer_id} ({side})",
            side,
            predict(job, side, row),
            [by_key[side, row, rank] for rank in range(job.gpus)],
        )
        for side in job.sides
        for row, layer_id in enumerate(job.layer_ids)
    ]
    comparisons = ", ".join(job.sides)
    scope = f"{job.gpus} ranks, {len(job.layer_ids)} layers, {comparisons}"
    return DispatchReport(
        checks=tuple(_check(name, cells, find, f"{what}: {scope}") for name, (find, what) in CHECKS.items()),
        layer_ids=job.layer_ids,
        seconds_L={
            side: {phase: _seconds_L(job, by_key, side, phase) for phase in PHASES} for side in job.sides
        },
        bytes_GG={
            side: _sum([cell.sent_bytes_GG for cell in cells if cell.side == side]) for side in job.sides
        },
        predicted_bytes_GG={
            side: _sum([cell.predicted.dispatch_bytes_GG for cell in cells if cell.side == side])
            for side in job.sides
        },
        device=device,
        rank=rank,
        notes=tuple([CPU_NOTE] if device == "cpu" else []) + tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class _Cell:
    """One layer under one placement."""

    where: str
    side: str
    predicted: Prediction
    seen: list[Seen]

    @property
    def sent_bytes_GG(self) -> Counts:
        return np.array([entry.sent_bytes_G for entry in self.seen], dtype=np.int64)

    @property
    def received_SGE(self) -> Counts:
        received_SGE = np.zeros_like(self.predicted.received_SGE)
        for entry in self.seen:
            for source, expert, count in entry.received:
                received_SGE[source, entry.rank, expert] = count
        return received_SGE


Find = Callable[[_Cell], Iterator[str]]


def _wrong_sums(cell: _Cell) -> Iterator[str]:
    for entry in cell.seen:
        yield from entry.wrong_sums


def _misplaced(cell: _Cell) -> Iterator[str]:
    for entry in cell.seen:
        if entry.misplaced:
            yield entry.misplaced


def _wrong_assignments(cell: _Cell) -> Iterator[str]:
    measured_SGE, predicted_SGE = cell.received_SGE, cell.predicted.received_SGE
    for source, gpu, expert in np.argwhere(measured_SGE != predicted_SGE).tolist():
        counts = f"{measured_SGE[source, gpu, expert]} times, predicted {predicted_SGE[source, gpu, expert]}"
        yield f"rank {source} sent expert {expert} to GPU {gpu} {counts}"


def _wrong_bytes(cell: _Cell) -> Iterator[str]:
    received_GG = np.array([entry.received_bytes_G for entry in cell.seen], dtype=np.int64).T
    back_GG = np.array([entry.sent_back_bytes_G for entry in cell.seen], dtype=np.int64)
    received_back_GG = np.array([entry.received_back_bytes_G for entry in cell.seen], dtype=np.int64).T
    for what, measured_GG, predicted_GG in (
        ("dispatch, sent", cell.sent_bytes_GG, cell.predicted.dispatch_bytes_GG),
        ("dispatch, received", received_GG, cell.predicted.dispatch_bytes_GG),
        ("combine, sent", back_GG, cell.predicted.combine_bytes_GG),
        ("combine, received", received_back_GG, cell.predicted.combine_bytes_GG),
    ):
        for sender, receiver in np.argwhere(measured_GG != predicted_GG).tolist():
            yield f"{what}: rank {sender} to rank {receiver} {measured_GG[sender, receiver]:,} bytes, predicted {predicted_GG[sender, receiver]:,}"


CHECKS: dict[str, tuple[Find, str]] = {
    "sums": (_wrong_sums, "every token came back with exactly the right weighted sum"),
    "holders": (_misplaced, "every expert was asked of a slot that holds it"),
    "assignments": (_wrong_assignments, "assignments per source, GPU and expert equal the prediction"),
    "bytes": (_wrong_bytes, "bytes per pair of ranks equal the prediction, both ways"),
}


def _check(name: str, cells: Sequence[_Cell], find: Find, success: str) -> Check:
    faults = [f"{cell.where}: {fault}" for cell in cells for fault in find(cell)]
    if not faults:
        return Check(name, ok=True, detail=success)
    return Check(
        name, ok=False, detail=faults[0] + (f"; and {len(faults) - 1} more" if len(faults) > 1 else "")
    )


def _seconds_L(
    job: DispatchJob, by_key: Mapping[tuple[str, int, int], Seen], side: str, phase: str
) -> npt.NDArray[np.float64]:
    """Of each layer: the slowest rank of each repeat, then the median over repeats."""
    seconds_LGR = np.array(
        [
            [by_key[side, row, rank].seconds[phase] for rank in range(job.gpus)]
            for row in range(len(job.layer_ids))
        ]
    )
    median_L: npt.NDArray[np.float64] = np.median(seconds_LGR.max(axis=1), axis=1)
    return median_L


def _sum(matrices: Sequence[Counts]) -> Counts:
    total_GG: Counts = np.sum(matrices, axis=0, dtype=np.int64)
    return total_GG
