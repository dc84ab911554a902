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
    date: 2026-01-15            # in YAML with or without quotes
"""

from collections.abc import Callable
from datetime import date
from typing import Any, TypeVar

from planner.base import BadInput, Keys, check_keys
from planner.topology.calibration import Calibration, PhaseCalibration, Reached, Scale, Span

MOST_PHASES = 64
_NUMBER = (int, float)
_PHASE: Keys = {
    "transport": str, "phase": str, "start_seconds": _NUMBER, "efficiency": dict, "scale": dict,
    "settings": int, "error": _NUMBER, "held_out_error": _NUMBER, "machine": str, "date": (str, date),
}  # fmt: skip
_SCALE: Keys = {
    "gpus": int, "domains": int, "nodes": int, "tokens": list, "width": int, "bytes_sent": list,
    "bytes_per_s": dict,
}  # fmt: skip
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
    check_keys(data, where, {"backend": str, "phases": list})
    if len(data["phases"]) > MOST_PHASES:
        raise BadInput(f"{where}: {len(data['phases'])} phases; a machine has at most {MOST_PHASES}")
    phases = tuple(_phase(one, f"{where}: phases[{index}]") for index, one in enumerate(data["phases"]))
    return _made(where, lambda: Calibration(data["backend"], phases))


def _phase(data: Any, where: str) -> PhaseCalibration:
    check_keys(data, where, _PHASE)
    reached = tuple(
        _reached(tier, entry, f"{where}: efficiency") for tier, entry in data["efficiency"].items()
    )
    scale = _scale(data["scale"], f"{where}: scale")
    day = data["date"]
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
            day if isinstance(day, str) else day.isoformat(),
        ),
    )


def _reached(tier: Any, entry: Any, where: str) -> Reached:
    check_keys(entry, f"{where}: {tier}", {"share": _NUMBER, "settings": int})
    return _made(where, lambda: Reached(str(tier), float(entry["share"]), entry["settings"]))


def _scale(data: Any, where: str) -> Scale:
    check_keys(data, where, _SCALE)
    tokens = _span(data["tokens"], f"{where}: tokens", int)
    sent = _span(data["bytes_sent"], f"{where}: bytes_sent", _NUMBER)
    of_tiers = data["bytes_per_s"].items()
    rates = tuple(
        (str(tier), _span(span, f"{where}: bytes_per_s: {tier}", _NUMBER)) for tier, span in of_tiers
    )
    counts = (data["gpus"], data["domains"], data["nodes"])
    return _made(where, lambda: Scale(*counts, (int(tokens[0]), int(tokens[1])), data["width"], sent, rates))


def _span(entry: Any, where: str, kind: Any) -> Span:
    numbers = isinstance(entry, list) and len(entry) == 2
    if not numbers or any(isinstance(one, bool) or not isinstance(one, kind) for one in entry):
        what = "whole numbers" if kind is int else "numbers"
        raise BadInput(f"{where}: is {str(entry)[:60]}; expected two {what}, the least and the most")
    return _made(where, lambda: (float(entry[0]), float(entry[1])))


def _made(where: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except OverflowError as error:  # a whole number of hundreds of digits
        raise BadInput(f"{where}: a number is too large ({error})") from error
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error
