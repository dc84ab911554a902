"""What the ranks of a validation run saw, set against the prediction.

Shapes: L layers that were run, G GPUs, R repeats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.checks import Cell, Check, check_all
from probes.dispatch.job import DispatchJob
from probes.dispatch.prediction import predict
from probes.dispatch.seen import PHASES, Seen
from probes.dispatch.sent import Counts

CPU_NOTE = "ran on the CPU: this checks the plan's routing and volume, not the speed of GPUs"

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DispatchReport:
    """The outcome.

    The mappings are keyed by side (plan, baseline); bytes are of dispatch, summed over layers, the diagonal
    being local copies.
    """

    checks: tuple[Check, ...]
    layer_ids: tuple[int, ...]
    seconds_L: Mapping[str, Mapping[str, Seconds]]  # by side and phase: slowest rank, median over repeats
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
    cells = _cells(job, seen)
    scope = f"{job.gpus} ranks, {len(job.layer_ids)} layers, {', '.join(job.sides)}"
    return DispatchReport(
        checks=check_all([cell for of_side in cells.values() for cell in of_side], scope),
        layer_ids=job.layer_ids,
        seconds_L={
            side: {phase: _seconds_L(of_side, phase) for phase in PHASES} for side, of_side in cells.items()
        },
        bytes_GG={side: _sum([cell.sent_bytes_GG for cell in of_side]) for side, of_side in cells.items()},
        predicted_bytes_GG={
            side: _sum([cell.predicted.dispatch_bytes_GG for cell in of_side])
            for side, of_side in cells.items()
        },
        device=device,
        rank=rank,
        notes=tuple([CPU_NOTE] if device == "cpu" else []) + tuple(notes),
    )


def _cells(job: DispatchJob, seen: Sequence[Seen]) -> dict[str, list[Cell]]:
    """The layers of each side. A result that is missing or double is our own fault."""
    by_key = {(entry.side, entry.row, entry.rank): entry for entry in seen}
    layers, ranks = range(len(job.layer_ids)), range(job.gpus)
    wanted = [(side, row, rank) for side in job.sides for row in layers for rank in ranks]
    missing = [key for key in wanted if key not in by_key]
    if missing or len(by_key) != len(seen):
        raise RuntimeError(f"the ranks' results are incomplete or double: {missing[:3]}")
    return {
        side: [
            Cell(
                f"layer {job.layer_ids[row]} ({side})",
                predict(job, side, row),
                [by_key[side, row, rank] for rank in ranks],
            )
            for row in layers
        ]
        for side in job.sides
    }


def _seconds_L(cells: Sequence[Cell], phase: str) -> Seconds:
    """Of each layer: the slowest rank of each repeat, then the median over repeats."""
    seconds_LGR = np.array([[entry.seconds[phase] for entry in cell.seen] for cell in cells])
    median_L: Seconds = np.median(seconds_LGR.max(axis=1), axis=1)
    return median_L


def _sum(matrices: Sequence[Counts]) -> Counts:
    total_GG: Counts = np.sum(matrices, axis=0, dtype=np.int64)
    return total_GG
