"""Calibrations as plain data, in topology and plan files and in files of their own.

backend: gloo
phases:
  - transport: slot
    phase: dispatch
    start_seconds: 0.0011
    efficiency: {nic: {share: 0.93, settings: 20}}
    scale:
      {gpus: 4, domains: 2, nodes: 2, tokens: [64, 512], width: 512, bytes_sent: [1.0e+5, 8.0e+5],
       bytes_per_s: {nvlink: [4.0e+7, 4.0e+7], nic: [1.0e+7, 1.0e+7]}}
    settings: 24
    error: 0.021
    held_out_error: 0.034
    machine: lab
    date: 2026-01-15
"""

from collections.abc import Callable
from typing import Any, TypeVar

from planner.base import BadInput
from planner.topology.calibration import Calibration, PhaseCalibration, Reached, Scale
from planner.topology.calibration_shape import CALIBRATION_SHAPE

Made = TypeVar("Made")


def calibration_to_dict(found: Calibration) -> dict[str, Any]:
    return {"backend": found.backend, "phases": [_phase_to_dict(one) for one in found.phases]}


def _phase_to_dict(one: PhaseCalibration) -> dict[str, Any]:
    scale = one.scale
    return {
        "transport": one.transport,
        "phase": one.phase,
        "start_seconds": one.start_seconds,
        "efficiency": {
            tier.tier: {"share": tier.efficiency, "settings": tier.settings} for tier in one.reached
        },
        "scale": {
            "gpus": scale.gpus,
            "domains": scale.domains,
            "nodes": scale.nodes,
            "tokens": list(scale.tokens),
            "width": scale.width,
            "bytes_sent": list(scale.bytes_sent),
            "bytes_per_s": {tier: list(span) for tier, span in scale.rates},
        },
        "settings": one.settings,
        "error": one.error,
        "held_out_error": one.held_out_error,
        "machine": one.machine,
        "date": one.date,
    }


def calibration_from_dict(data: Any, where: str) -> Calibration:
    """BadInput names the place in `where`, and the value."""
    CALIBRATION_SHAPE.check(data, where)
    phases = tuple(_phase(one, f"{where}: phases[{index}]") for index, one in enumerate(data["phases"]))
    return _made(where, lambda: Calibration(data["backend"], phases))


def _phase(data: dict[str, Any], where: str) -> PhaseCalibration:
    reached = tuple(
        Reached(tier, float(entry["share"]), entry["settings"]) for tier, entry in data["efficiency"].items()
    )
    scale = _made(f"{where}: scale", lambda: _scale(data["scale"]))
    return _made(
        where,
        lambda: PhaseCalibration(
            data["transport"],
            data["phase"],
            float(data["start_seconds"]),
            reached,
            scale,
            data["settings"],
            float(data["error"]),
            float(data["held_out_error"]),
            data["machine"],
            data["date"],
        ),
    )


def _scale(data: dict[str, Any]) -> Scale:
    least, most = data["tokens"]
    rates = tuple((tier, (float(low), float(high))) for tier, (low, high) in data["bytes_per_s"].items())
    sent = (float(data["bytes_sent"][0]), float(data["bytes_sent"][1]))
    counts = (data["gpus"], data["domains"], data["nodes"])
    return Scale(*counts, (least, most), data["width"], sent, rates)


def _made(where: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error
