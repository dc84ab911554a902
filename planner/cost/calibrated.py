"""Constants of a calibrated machine: what runs on it said, in place of what the GPU's chip is known for.

A phase or transport that was not run keeps the chip's constants and says so; so does a question beyond what
was run.
"""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from planner.cost.traffic import message_bytes
from planner.problem import Problem
from planner.topology import Calibration, PhaseCalibration

if TYPE_CHECKING:
    from planner.cost.constants import ComputeConstants, PhaseConstants


class Extent(NamedTuple):
    """How large a question is, as `Scale.beyond` asks."""

    gpus: int
    domains: int
    nodes: int
    bytes_sent: float


def extent_of(problem: Problem, phase: str) -> Extent:
    """Bytes: those of a GPU's messages in a step if none merge; of compute, of those that bring its work."""
    topology, workload = problem.topology, problem.workload
    copies = 1 if workload.transport == "allgather" else problem.model.top_k
    sent = workload.tokens_per_rank * copies * message_bytes(problem)[phase == "combine"]
    return Extent(problem.gpus, topology.domain_count, topology.node_count, sent)


@lru_cache(maxsize=256)
def calibrated_phase(
    found: "PhaseConstants", calibration: Calibration, transport: str, phase: str, extent: Extent
) -> "PhaseConstants":
    """Dispatch or combine. A tier that no run waited for keeps the share it had."""
    known = calibration.find(transport, phase)
    if known is None:
        return replace(found, source=found.source + _missing(calibration, transport, phase))
    return replace(
        found,
        fixed_seconds=known.start_seconds,
        least_ranks=known.scale.gpus,
        seconds_per_doubling=0.0,
        seconds_per_slot=0.0,
        nvlink_efficiency=known.efficiency("nvlink") or found.nvlink_efficiency,
        nic_efficiency=known.efficiency("nic") or found.nic_efficiency,
        source=_source(calibration, known),
        error=_error(known, extent),
        held_out=None if known.scale.beyond(*extent) else known.held_out_error,
        calibrated=tuple((one.tier, one.efficiency) for one in known.reached),
    )


@lru_cache(maxsize=256)
def calibrated_compute(
    found: "ComputeConstants", calibration: Calibration, transport: str, extent: Extent
) -> "ComputeConstants":
    """Expert compute of a GPU: shares of the chip's peak and HBM rate; what vectors take is in them."""
    known = calibration.find(transport, "compute")
    if known is None:
        return replace(found, source=found.source + _missing(calibration, transport, "compute"))
    return replace(
        found,
        fixed_seconds=known.start_seconds,
        flops_efficiency=known.efficiency("flops") or found.flops_efficiency,
        memory_efficiency=known.efficiency("memory") or found.memory_efficiency,
        seconds_per_value=0.0,
        source=_source(calibration, known),
        error=_error(known, extent),
        held_out=None if known.scale.beyond(*extent) else known.held_out_error,
    )


def _missing(calibration: Calibration, transport: str, phase: str) -> str:
    others = sorted({one.transport for one in calibration.phases if one.phase == phase} - {transport})
    has = f", but of {', '.join(others)}" if others else ""
    return f" (the machine is calibrated over {calibration.backend}, not in {phase} of {transport}{has})"


def _source(calibration: Calibration, known: PhaseCalibration) -> str:
    between = ", between CPU processes" if calibration.backend == "gloo" else ""
    return f"calibrated on {known.machine}, {known.date}, over {calibration.backend}{between}"


def _error(known: PhaseCalibration, extent: Extent) -> str:
    fitted = f"mean error {known.error:.1%}, on settings left out {known.held_out_error:.1%}"
    beyond = known.scale.beyond(*extent)
    return f"{fitted}; extrapolated from {beyond}, not judged" if beyond else fitted
