"""Constants of the cost model for the GPUs at hand, each with where it came from and how far off it is.

The figures are data (planner/data/constants.yaml, by chip). A measurement of the cluster's links replaces
their shares of line rates; until then plans call them what they are. Where the machine has a calibration for
the transport, its figures stand in place of the chip's (planner/cost/calibrated.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from planner.cost.calibrated import calibrated_compute, calibrated_phase, extent_of
from planner.cost.figures import Figures, compute_figures, phase_figures
from planner.problem import Problem
from planner.topology import chip_of


@dataclass(frozen=True)
class PhaseConstants:
    """One direction of a transport, for `ranks` of them with so many slots each.

    seconds = fixed + per_doubling · log2(ranks / least) + per_slot · slots
              + max over resources of bytes / (rate · efficiency), with no less than `least` ranks.
    """

    fixed_seconds: float
    least_ranks: int  # the smallest group that was measured
    seconds_per_doubling: float
    seconds_per_slot: float
    nvlink_efficiency: float
    nic_efficiency: float
    source: str
    error: str  # of this chip, or that none is known
    held_out: float | None = None  # mean error on what was left out of the fit; None: not judged here
    calibrated: tuple[tuple[str, float], ...] = ()  # tier and share, of whatever rate the machine has

    def start_seconds(self, ranks: int, slots_per_gpu: int) -> float:
        """Time before the first byte counts; a single rank sends nothing."""
        if ranks == 1:
            return 0.0
        doublings = log2(max(ranks / self.least_ranks, 1.0))
        grown = self.seconds_per_doubling * doublings + self.seconds_per_slot * slots_per_gpu
        return self.fixed_seconds + grown

    def efficiency(self, tier: str) -> float:
        """Share of a tier's line rate that messages reach."""
        shares = {"nvlink": self.nvlink_efficiency, "pcie": 0.8, "host": 0.8, **dict(self.calibrated)}
        return shares.get(tier, self.nic_efficiency)

    def reached(self, tier: str, *, measured: bool) -> float:
        """Share of a tier's rate that messages reach: all of a measured one, unless runs said otherwise."""
        return 1.0 if measured and tier not in dict(self.calibrated) else self.efficiency(tier)


@dataclass(frozen=True)
class ComputeConstants:
    """Expert compute of a GPU.

    seconds = fixed + max(operations / (peak of `rate` · share), touched weight bytes / (bandwidth · share))
              + per_value · elements of the rows that enter.
    """

    fixed_seconds: float
    flops_efficiency: float
    memory_efficiency: float
    seconds_per_value: float
    rate: str  # the dtype whose peak rate the operations are counted against
    source: str
    error: str
    held_out: float | None = None  # as of a phase


@dataclass(frozen=True)
class Constants:
    """What a step of one problem is predicted with.

    `compute_M`: by GPU model, in the order of the topology's models. `compute` is what is said of them all.
    """

    dispatch: PhaseConstants
    combine: PhaseConstants
    compute_M: tuple[ComputeConstants, ...]

    @property
    def compute(self) -> ComputeConstants:
        """The slowest figures there are, with the sources of all."""
        every = self.compute_M
        if len(set(every)) == 1:
            return every[0]
        return ComputeConstants(
            max(one.fixed_seconds for one in every),
            min(one.flops_efficiency for one in every),
            min(one.memory_efficiency for one in every),
            max(one.seconds_per_value for one in every),
            every[0].rate,
            _joined(one.source for one in every),
            _joined(one.error for one in every),
            _worst(one.held_out for one in every),
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """A sentence for each part: what it rests on and how far off that is."""
        compute = self.compute
        return (
            f"Dispatch: {self.dispatch.source}; {self.dispatch.error}.",
            f"Combine: {self.combine.source}; {self.combine.error}.",
            f"Compute: {compute.source}; {compute.error}.",
        )


def constants_of(problem: Problem) -> Constants:
    """The constants for its GPUs, transport and weight dtype.

    Of several GPU models each computes by its own; dispatch and combine take the slower figure of each kind.
    """
    topology, workload = problem.topology, problem.workload
    chips = tuple(chip_of(model.name) or model.name for model in topology.models)
    several = topology.domain_count > 1
    dtype, width = problem.model.weight_dtype, problem.model.dispatch_width
    found = _constants(chips, workload.transport, dtype, width, problem.gpus, several=several)
    if topology.calibration is None:
        return found
    known, transport = topology.calibration, workload.transport
    dispatch, combine = (
        calibrated_phase(of, known, transport, phase, extent_of(problem, phase))
        for of, phase in ((found.dispatch, "dispatch"), (found.combine, "combine"))
    )
    worked = extent_of(problem, "compute")
    compute_M = tuple(calibrated_compute(of, known, transport, worked) for of in found.compute_M)
    return Constants(dispatch, combine, compute_M)


@lru_cache(maxsize=256)
def _constants(
    chips: tuple[str, ...], transport: str, dtype: str, width: int, gpus: int, *, several: bool
) -> Constants:
    kinds = tuple(dict.fromkeys(chips))

    def phase(direction: str) -> PhaseConstants:
        found = [phase_figures(direction, transport, chip, gpus, several=several) for chip in kinds]
        return _slowest([_phase(one) for one in found])

    compute = tuple(_compute(compute_figures(transport, dtype, chip, width)) for chip in chips)
    return Constants(phase("dispatch"), phase("combine"), compute)


def _phase(found: Figures) -> PhaseConstants:
    value = found.values
    return PhaseConstants(
        value["fixed_us"] * 1e-6,
        value["least"],
        value["per_doubling_us"] * 1e-6,
        value["per_slot_us"] * 1e-6,
        value["nvlink"],
        value["nic"],
        found.source,
        found.error,
        found.held_out,
    )


def _compute(found: Figures) -> ComputeConstants:
    value = found.values
    return ComputeConstants(
        value["fixed_us"] * 1e-6,
        value["flops"],
        value["memory"],
        value["per_value_ps"] * 1e-12,
        found.rate,
        found.source,
        found.error,
        found.held_out,
    )


def _slowest(found: Sequence[PhaseConstants]) -> PhaseConstants:
    if len(set(found)) == 1:
        return found[0]
    return PhaseConstants(
        max(one.fixed_seconds for one in found),
        min(one.least_ranks for one in found),
        max(one.seconds_per_doubling for one in found),
        max(one.seconds_per_slot for one in found),
        min(one.nvlink_efficiency for one in found),
        min(one.nic_efficiency for one in found),
        "the slower of each figure of " + _joined(one.source for one in found),
        _joined(one.error for one in found),
        _worst(one.held_out for one in found),
    )


def _worst(errors: Iterable[float | None]) -> float | None:
    """None where one is not known."""
    every = list(errors)
    return None if None in every else max(one for one in every if one is not None)


def _joined(texts: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(texts))
