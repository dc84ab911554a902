"""A machine with a calibration: put on it, and held against its rates. And the calibration's own file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput, human_bandwidth, read_json, write_json
from planner.topology.calibration import STATED_TIERS, Calibration, PhaseCalibration, Span
from planner.topology.calibration_dict import calibration_from_dict, calibration_to_dict
from planner.topology.calibration_shape import CALIBRATION, SCHEMA
from planner.topology.topology import Topology

LARGEST_FILE_BYTES = 1 << 20
SAME_RATE = 0.05  # as far as a rate may be off that an efficiency is a share of


def rates_of(topology: Topology) -> dict[str, Span]:
    """Bytes/s of the slowest and the fastest link of each tier whose rates are stated."""
    found: dict[str, Span] = {}
    for resource in topology.resources:
        if resource.tier in STATED_TIERS:
            rate = resource.rate.bytes_per_s
            least, most = found.get(resource.tier, (rate, rate))
            found[resource.tier] = min(least, rate), max(most, rate)
    return {tier: found[tier] for tier in STATED_TIERS if tier in found}


def calibrated(topology: Topology, calibration: Calibration, where: str) -> Topology:
    """The machine with the calibration, beside what it had of other transports.

    BadInput where its links are not those of the calibration: an efficiency is a share of a rate, and what
    gloo reaches of emulated links says nothing of NVLink.
    """
    check_rates(topology, calibration, where)
    if topology.calibration is not None:
        try:
            calibration = topology.calibration.joined(calibration)
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from error
    return replace(topology, calibration=calibration)


def check_rates(topology: Topology, calibration: Calibration, where: str) -> None:
    """BadInput where a link of the machine is off the rates that the calibration was taken on."""
    rates = rates_of(topology)
    for phase in calibration.phases:
        if phase.phase != "compute":
            _check_phase(topology.name, rates, calibration.backend, phase, where)


def _check_phase(
    machine: str, rates: Mapping[str, Span], backend: str, phase: PhaseCalibration, where: str
) -> None:
    taken = f"{phase.phase} of {phase.transport} was calibrated over {backend} on {phase.machine}"
    shared = [(tier, span) for tier, span in phase.scale.rates if tier in rates]
    if not shared:
        raise BadInput(f"{where}: {taken}, which shares no kind of link with {machine}")
    for tier, (least, most) in shared:
        if rates[tier][0] < least * (1 - SAME_RATE) or rates[tier][1] > most * (1 + SAME_RATE):
            links = f"{tier} links of {_span_text((least, most))}, {machine} has {_span_text(rates[tier])}"
            raise BadInput(f"{where}: {taken}, with {links}; calibrate on this machine")


def _span_text(span: Span) -> str:
    return " to ".join(dict.fromkeys(map(human_bandwidth, span)))


def is_calibration_text(start: bytes) -> bool:
    """Whether a file that begins so says that it is a calibration: the schema is its first entry."""
    return start.lstrip()[:1] == b"{" and b'"moeplan/calibration/' in start[:256]


def read_calibration(path: str | Path) -> Calibration:
    """BadInput where the file is of another kind or version, or damaged."""
    data, where = read_json(path, LARGEST_FILE_BYTES), str(path)
    CALIBRATION.check(data, where)
    return calibration_from_dict({key: value for key, value in data.items() if key != "schema"}, where)


def write_calibration(calibration: Calibration, path: str | Path) -> Path:
    return write_json(path, {"schema": SCHEMA, **calibration_to_dict(calibration)})
