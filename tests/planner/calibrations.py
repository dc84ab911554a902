"""Calibrations made up for tests: of a machine at hand, with round figures."""

from typing import Any

from planner.topology import Calibration, PhaseCalibration, Reached, Topology
from planner.topology.calibrated import rates_of
from planner.topology.calibration import Scale

EFFICIENCY = {"nvlink": 0.5, "nic": 0.8}
START_SECONDS = 0.001


def scale_of(topology: Topology, **changes: Any) -> Scale:
    """All of the machine, 1 kB to 1 GB a GPU and step."""
    figures: dict[str, Any] = {
        "gpus": topology.gpu_count,
        "domains": topology.domain_count,
        "nodes": topology.node_count,
        "tokens": (64, 512),
        "width": 512,
        "bytes_sent": (1e3, 1e9),
        "rates": tuple(rates_of(topology).items()),
    }
    return Scale(**(figures | changes))


def phase_of(topology: Topology, phase: str = "dispatch", **changes: Any) -> PhaseCalibration:
    figures: dict[str, Any] = {
        "transport": "slot",
        "phase": phase,
        "start_seconds": START_SECONDS,
        "reached": tuple(Reached(tier, share, 12) for tier, share in EFFICIENCY.items()),
        "scale": scale_of(topology),
        "settings": 24,
        "error": 0.021,
        "held_out_error": 0.034,
        "machine": "lab",
        "date": "2026-01-15",
    }
    return PhaseCalibration(**(figures | changes))


def calibration_of(topology: Topology, backend: str = "gloo", **changes: Any) -> Calibration:
    """Dispatch and combine of transport slot."""
    return Calibration(
        backend, tuple(phase_of(topology, phase, **changes) for phase in ("dispatch", "combine"))
    )
