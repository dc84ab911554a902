"""How long the phases of one pass take on this rank. Imports torch.

On GPUs what is timed as compute is the grouped GEMM of the model's own shapes, for as many rows as came; the
exact integers that prove the sums are worked on beside it, once. CUDA parts were not run on a GPU when this
was written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probes.dispatch.gemm.choose import choose
from probes.dispatch.gemm.shapes import Groups
from probes.dispatch.job import DispatchJob
from probes.dispatch.passes import Pass
from probes.dispatch.seen import PHASES
from probes.ranks.clock import Clock, CpuClock, CudaClock, capture
from probes.ranks.wire import Wire

Works = Mapping[str, Callable[[], Any]]  # by phase


@dataclass
class Timing:
    """One side of one row: its works, and a clock for each.

    `work_out` brings the exact results where what is timed as compute does not.
    """

    works: Works
    clocks: Mapping[str, Clock]
    work_out: Callable[[], None]
    sums: Callable[[], Tensor]  # of the last pass

    def once(self, wire: Wire, where: str) -> Tensor:
        """One pass; every phase is begun by all ranks together."""
        for phase in PHASES:
            wire.status.enter(f"{phase} {where}")
            self.clocks[phase].sample(self.works[phase])
            if phase == "compute":
                self.work_out()
        return self.sums()

    def seconds(self) -> dict[str, list[float]]:
        return {phase: clock.seconds() for phase, clock in self.clocks.items()}


def timing_of(job: DispatchJob, wire: Wire, one: Pass) -> tuple[Timing, tuple[str, ...]]:
    """The works of a pass, captured as graphs where that was asked for, and notes."""
    last: dict[str, Any] = {}
    expert_work, notes = experts_of(job, wire, one)

    def dispatch() -> None:
        last["arrived"] = one.dispatch()

    def compute() -> None:
        last["results"] = one.compute(last["arrived"])

    def combine() -> None:
        last["sums"] = one.combine(last["arrived"], last["results"])

    def work_out() -> None:
        """Into the same tensor, which a graph may have recorded."""
        last["results"].copy_(one.compute(last["arrived"]))

    works: dict[str, Callable[[], Any]] = {
        "dispatch": dispatch,
        "compute": expert_work or compute,
        "combine": combine,
    }
    if expert_work is not None:
        dispatch()
        compute()
    if job.cuda_graph and wire.device.type == "cuda":
        for phase in PHASES:
            works[phase], note = capture(works[phase], wire.gather)
            notes = (*notes, f"{phase}: {note}") if note else notes
    clocks = {phase: clock_of(wire) for phase in PHASES}
    beside = work_out if expert_work else (lambda: None)
    return Timing(works, clocks, beside, lambda: last["sums"]), notes


def alone(job: DispatchJob, wire: Wire, one: Pass, arrived: Any) -> tuple[list[float], tuple[str, ...]]:
    """Seconds of this rank's expert compute, while no other rank works: for virtual ranks."""
    expert_work, notes = experts_of(job, wire, one)
    clock = clock_of(wire, lambda: None)
    for _ in range(job.repeats):
        clock.sample(expert_work or (lambda: one.compute(arrived)))
    return clock.seconds(), notes


def clock_of(wire: Wire, together: Callable[[], None] | None = None) -> Clock:
    return (CudaClock if wire.device.type == "cuda" else CpuClock)(together or wire.together)


def experts_of(
    job: DispatchJob, wire: Wire, one: Pass
) -> tuple[Callable[[], Tensor | None] | None, tuple[str, ...]]:
    """The grouped GEMM of this rank's slots; None on the CPU, which is not asked for speed."""
    if wire.device.type != "cuda" or job.expert is None:
        return None, ()
    library, notes = choose(job.expert.weight_dtype, torch.cuda.get_device_capability(wire.device))
    groups = Groups(np.array(one.rows_Z(), dtype=np.int64), library.ALIGNMENT)
    if groups.total == 0:
        return lambda: None, notes
    return library.make(job.timed_expert, groups, wire.device), notes
