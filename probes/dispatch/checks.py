"""What must hold of a layer that was run: what its ranks saw, against the prediction.

Shapes: G GPUs, S sources (all G of them), E experts, N repeats.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.prediction import Prediction
from probes.dispatch.seen import ANY_SOURCE, Seen
from probes.dispatch.sent import Counts
from probes.dispatch.traffic_checks import (
    Matrix,
    TrafficLaw,
    wrong_load,
    wrong_matrices,
    wrong_replicas,
    wrong_results,
    wrong_tokens,
)


@dataclass(frozen=True)
class Check:
    """One thing that had to hold. `detail` is what was compared, or the first place where it failed."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, eq=False)
class Cell:
    """One row under one side."""

    where: str
    predicted: Prediction
    law: TrafficLaw
    seen: list[Seen]

    @property
    def counts_bytes(self) -> bool:
        """Not where kernels do not tell them."""
        return all(entry.sent_bytes_G for entry in self.seen)

    @property
    def sent_bytes_GG(self) -> Counts:
        if not self.counts_bytes:
            return np.zeros_like(self.predicted.dispatch_bytes_GG)
        return _stacked([entry.sent_bytes_G for entry in self.seen])

    @property
    def sources_are_told(self) -> bool:
        return not any(source == ANY_SOURCE for entry in self.seen for source, _, _ in entry.received)

    @property
    def received_SGE(self) -> Counts:
        """With one source in place of all where kernels do not tell them apart."""
        received_SGE = np.zeros_like(self.wanted_SGE)
        for entry in self.seen:
            for source, expert, count in entry.received:
                received_SGE[max(source, 0), entry.rank, expert] += count
        return received_SGE

    @property
    def wanted_SGE(self) -> Counts:
        wanted_SGE = self.predicted.received_SGE
        return wanted_SGE if self.sources_are_told else wanted_SGE.sum(axis=0, keepdims=True)

    def seconds_GN(self, phase: str) -> npt.NDArray[np.float64]:
        return np.array([entry.seconds[phase] for entry in self.seen])


def _stacked(rows_GG: Sequence[Sequence[int]]) -> Counts:
    return np.array(rows_GG, dtype=np.int64)


Find = Callable[[Cell], Iterator[str]]


def _wrong_sums(cell: Cell) -> Iterator[str]:
    for entry in cell.seen:
        yield from entry.wrong_sums


def _misplaced(cell: Cell) -> Iterator[str]:
    for entry in cell.seen:
        if entry.misplaced:
            yield entry.misplaced


def _wrong_assignments(cell: Cell) -> Iterator[str]:
    measured_SGE, predicted_SGE = cell.received_SGE, cell.wanted_SGE
    for source, gpu, expert in np.argwhere(measured_SGE != predicted_SGE).tolist():
        counts = f"{measured_SGE[source, gpu, expert]} times, predicted {predicted_SGE[source, gpu, expert]}"
        sender = f"rank {source}" if cell.sources_are_told else "all ranks"
        yield f"{sender} sent expert {expert} to GPU {gpu} {counts}"


def _wrong_bytes(cell: Cell) -> Iterator[str]:
    seen, there_GG, back_GG = cell.seen, cell.predicted.dispatch_bytes_GG, cell.predicted.combine_bytes_GG
    for what, measured_GG, predicted_GG in (
        ("dispatch, sent", cell.sent_bytes_GG, there_GG),
        ("dispatch, received", _stacked([entry.received_bytes_G for entry in seen]).T, there_GG),
        ("combine, sent", _stacked([entry.sent_back_bytes_G for entry in seen]), back_GG),
        ("combine, received", _stacked([entry.received_back_bytes_G for entry in seen]).T, back_GG),
    ):
        for sender, receiver in np.argwhere(measured_GG != predicted_GG).tolist():
            measured, predicted = measured_GG[sender, receiver], predicted_GG[sender, receiver]
            yield f"{what}: rank {sender} to rank {receiver} {measured:,} bytes, predicted {predicted:,}"


def _alike(cell: Cell) -> Iterator[str]:
    for entry in cell.seen:
        yield from wrong_tokens(cell.law, entry.rank, entry.distinct_tokens)
        yield from wrong_results(cell.law, entry.rank, entry.distinct_results)


def _wrong_experts(cell: Cell) -> Iterator[str]:
    for entry in cell.seen:
        yield from wrong_matrices(cell.law, entry.rank, [Matrix(*one) for one in entry.matrices])


CHECKS: dict[str, tuple[Find, str]] = {
    "sums": (_wrong_sums, "every token came back with exactly the right weighted sum"),
    "holders": (_misplaced, "every expert was asked of a slot that holds it"),
    "assignments": (_wrong_assignments, "assignments per source, GPU and expert equal the prediction"),
    "bytes": (_wrong_bytes, "bytes per pair of ranks equal the prediction, both ways"),
    "tokens": (_alike, "tokens and what came back of them differ from each other"),
    "experts": (_wrong_experts, "every slot has a matrix of its own expert, none empty"),
    "replicas": (
        lambda cell: wrong_replicas(cell.law, cell.received_SGE),
        "replicas got the shares of the replica rule",
    ),
    "load": (
        lambda cell: wrong_load(cell.law, cell.received_SGE),
        "experts were asked for as often as the load says",
    ),
}


def check_all(cells: Sequence[Cell], scope: str) -> tuple[Check, ...]:
    """Every check over all cells; `scope` tells what was compared. No bytes where kernels tell none."""
    checks = {name: check for name, check in CHECKS.items() if name != "bytes" or cells[0].counts_bytes}
    return tuple(_check(name, cells, find, f"{what}: {scope}") for name, (find, what) in checks.items())


def _check(name: str, cells: Sequence[Cell], find: Find, success: str) -> Check:
    faults = [f"{cell.where}: {fault}" for cell in cells for fault in find(cell)]
    if not faults:
        return Check(name, ok=True, detail=success)
    more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
    return Check(name, ok=False, detail=faults[0] + more)
