"""What the ranks of a validation run saw, set against the prediction.

Shapes: L rows that were run, G GPUs, N repeats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.checks import Cell, Check, check_all
from probes.dispatch.job import DispatchJob
from probes.dispatch.prediction import law_of, predict
from probes.dispatch.run import Found
from probes.dispatch.seen import PHASES, Seen
from probes.dispatch.sent import Counts

CPU_NOTE = "ran on the CPU: this checks the plan's routing and volume, not the speed of GPUs"

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DispatchReport:
    """The outcome.

    The mappings are keyed by side (plan, default, ...); bytes are of dispatch, summed over rows, the diagonal
    being local copies.
    """

    checks: tuple[Check, ...]
    layer_ids: tuple[int, ...]
    cells: Mapping[str, Sequence[Cell]]  # by side, a cell a row
    device: str
    hosts: tuple[str, ...]  # of each rank
    rank: int  # 0 where this process is the one that speaks
    notes: tuple[str, ...]
    timed_phases: tuple[str, ...] = PHASES  # those whose seconds mean something

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def seconds_L(self) -> Mapping[str, Mapping[str, Seconds]]:
        """By side and phase: slowest rank, median over repeats."""
        return {
            side: {phase: _seconds_L(cells, phase) for phase in PHASES} for side, cells in self.cells.items()
        }

    @property
    def compute_seconds_G(self) -> Mapping[str, Seconds]:
        """By side: each rank's expert compute, median over repeats, summed over the rows."""
        return {
            side: np.sum([np.median(cell.seconds_GN("compute"), axis=1) for cell in cells], axis=0)
            for side, cells in self.cells.items()
        }

    @property
    def counts_bytes(self) -> bool:
        return all(cell.counts_bytes for cells in self.cells.values() for cell in cells)

    @property
    def bytes_GG(self) -> Mapping[str, Counts]:
        return {side: _sum([cell.sent_bytes_GG for cell in cells]) for side, cells in self.cells.items()}

    @property
    def predicted_bytes_GG(self) -> Mapping[str, Counts]:
        return {
            side: _sum([cell.predicted.dispatch_bytes_GG for cell in cells])
            for side, cells in self.cells.items()
        }


def judge(found: Found) -> DispatchReport:
    """Every rank's account of every row and side against the prediction made here."""
    job = found.job
    cells = _cells(job, found.seen)
    scope = f"{job.gpus} ranks, {len(job.layer_ids)} layers, {', '.join(job.sides)}"
    return DispatchReport(
        checks=check_all([cell for of_side in cells.values() for cell in of_side], scope),
        layer_ids=job.layer_ids,
        cells=cells,
        device=job.device,
        hosts=found.hosts,
        rank=found.rank,
        notes=tuple([CPU_NOTE] if job.device == "cpu" else []) + found.notes + found.remarks,
        timed_phases=job.timed_phases,
    )


def _cells(job: DispatchJob, seen: Sequence[Seen]) -> dict[str, list[Cell]]:
    """The rows of each side. A result that is missing or double is our own fault."""
    by_key = {(entry.side, entry.row, entry.rank): entry for entry in seen}
    layers, ranks = range(len(job.layer_ids)), range(job.gpus)
    wanted = [(side, row, rank) for side in job.sides for row in layers for rank in ranks]
    missing = [key for key in wanted if key not in by_key]
    if missing or len(by_key) != len(seen):
        raise RuntimeError(f"the ranks' results are incomplete or double: {missing[:3]}")
    return {
        side: [
            Cell(
                job.where(row, side),
                predict(job, side, row),
                law_of(job, side, row),
                [by_key[side, row, rank] for rank in ranks],
            )
            for row in layers
        ]
        for side in job.sides
    }


def _seconds_L(cells: Sequence[Cell], phase: str) -> Seconds:
    """Of each layer: the slowest rank of each repeat, then the median over repeats."""
    seconds_LGN = np.stack([cell.seconds_GN(phase) for cell in cells])
    median_L: Seconds = np.median(seconds_LGN.max(axis=1), axis=1)
    return median_L


def _sum(matrices: Sequence[Counts]) -> Counts:
    total_GG: Counts = np.sum(matrices, axis=0, dtype=np.int64)
    return total_GG
