"""Calibration: start-up and efficiency of a machine's exchange, fitted to runs of plans on that machine.

It belongs to a machine: `Topology.calibration` holds it, and the cost model takes it before the constants of
the GPU's chip. An efficiency is a share of the rates that the machine had; on other rates it says nothing.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date as calendar_date

from planner.base import BadInput, human_bytes

LINK_TIERS = ("nvlink", "pcie", "host", "nic", "leaf", "spine")
STATED_TIERS = ("nvlink", "pcie", "host", "nic")  # uplinks follow from the NICs, and shrink with the job
WORK_TIERS = ("flops", "memory")  # of expert compute: shares of the peak and of the HBM rate
PHASES = ("dispatch", "combine", "compute")
HIGHEST_EFFICIENCY = 1.5  # beyond it the rates are not those of the links
LONGEST_START_SECONDS = 60.0
LONGEST_TEXT = 200
_BACKEND = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")

Span = tuple[float, float]  # least and most


@dataclass(frozen=True)
class Reached:
    """Share of a tier's rate that messages reach, and in how many settings they waited for that tier."""

    tier: str
    efficiency: float
    settings: int

    def __post_init__(self) -> None:
        if not 0 < self.efficiency <= HIGHEST_EFFICIENCY:
            allowed = f"give a share above 0, up to {HIGHEST_EFFICIENCY}"
            raise BadInput(f"efficiency of {self.tier} is {self.efficiency}; {allowed}")
        _check_count(f"settings of {self.tier}", self.settings, least=0)


@dataclass(frozen=True)
class Scale:
    """What was run: how many GPUs over how many NVLink domains and nodes, and with how many bytes.

    `bytes_sent`: bytes of a GPU's messages in a step if none merge. `rates`: bytes/s of the tiers whose rates
    are stated, slowest and fastest link.
    """

    gpus: int
    domains: int
    nodes: int
    tokens: tuple[int, int]  # of a rank in a step
    width: int  # elements of a token
    bytes_sent: Span
    rates: tuple[tuple[str, Span], ...]

    def __post_init__(self) -> None:
        for name in ("gpus", "domains", "nodes", "width"):
            _check_count(name, getattr(self, name))
        if max(self.domains, self.nodes) > self.gpus:
            over = f"{self.domains} NVLink domains and {self.nodes} nodes"
            raise BadInput(f"{self.gpus} GPUs cannot be in {over}")
        for name, span in (("tokens", self.tokens), ("bytes_sent", self.bytes_sent), *self.rates):
            _check_span(name, span)
        tiers = [tier for tier, _ in self.rates]
        odd = [tier for tier in tiers if tier not in STATED_TIERS or tiers.count(tier) > 1]
        if odd:
            raise BadInput(f"rates of {odd[0]!r}: give each of {', '.join(STATED_TIERS)} at most once")

    def beyond(self, gpus: int, domains: int, nodes: int, bytes_sent: float) -> str:
        """What of a question was not run: '4 GPUs to 16, 2 nodes to 4'. Empty where it all was."""
        counts = (
            (self.gpus, gpus, "GPU"),
            (self.domains, domains, "NVLink domain"),
            (self.nodes, nodes, "node"),
        )
        found = [f"{_counted(had, what)} to {asked}" for had, asked, what in counts if asked != had]
        least, most = self.bytes_sent
        if not least * (1 - 1e-9) <= bytes_sent <= most * (1 + 1e-9):
            had = human_bytes(most if bytes_sent > most else least)
            found.append(f"{had} a GPU and step to {human_bytes(bytes_sent)}")
        return ", ".join(found)


@dataclass(frozen=True)
class PhaseCalibration:
    """One phase of one transport: seconds = start + max over resources of bytes / (rate · efficiency).

    Errors are mean relative errors over settings: those of the fit, and those it had not seen.
    """

    transport: str
    phase: str
    start_seconds: float
    reached: tuple[Reached, ...]  # the tiers that were waited for; others keep what was assumed of them
    scale: Scale
    settings: int
    error: float
    held_out_error: float
    machine: str
    date: str  # '2026-01-15'

    def __post_init__(self) -> None:
        where = f"{self.transport} {self.phase}"
        if self.phase not in PHASES or not _BACKEND.fullmatch(self.transport):
            raise BadInput(f"{where!r}: a calibration is of a transport and of {', '.join(PHASES)}")
        if not 0 <= self.start_seconds <= LONGEST_START_SECONDS:
            allowed = f"give 0 to {LONGEST_START_SECONDS:g}"
            raise BadInput(f"{where}: start_seconds is {self.start_seconds}; {allowed}")
        known = WORK_TIERS if self.phase == "compute" else LINK_TIERS
        tiers = [one.tier for one in self.reached]
        odd = [tier for tier in tiers if tier not in known or tiers.count(tier) > 1]
        if odd or not tiers:
            said = f"efficiency of {odd[0]!r}" if odd else "no tier has an efficiency"
            raise BadInput(f"{where}: {said}; give at least one of {', '.join(known)}, each once")
        for name in ("error", "held_out_error"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadInput(f"{where}: {name} is {getattr(self, name)}; give a share of the seconds")
        _check_count(f"{where}: settings", self.settings)
        _check_text(f"{where}: machine", self.machine)
        _check_date(where, self.date)

    def efficiency(self, tier: str) -> float | None:
        """Of a tier that was waited for; None of others."""
        return next((one.efficiency for one in self.reached if one.tier == tier), None)


@dataclass(frozen=True)
class Calibration:
    """What is calibrated of a machine, all over one backend: gloo, nccl, deepep, ..."""

    backend: str
    phases: tuple[PhaseCalibration, ...]

    def __post_init__(self) -> None:
        if not _BACKEND.fullmatch(self.backend):
            raise BadInput(f"backend {self.backend[:40]!r}: give its name, like gloo or nccl")
        if not self.phases:
            raise BadInput("a calibration has at least one phase of a transport")
        keys = [(one.transport, one.phase) for one in self.phases]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise BadInput(f"{twice[0][1]} of {twice[0][0]} appears twice; leave one out")

    def find(self, transport: str, phase: str) -> PhaseCalibration | None:
        return next((one for one in self.phases if (one.transport, one.phase) == (transport, phase)), None)

    def joined(self, newer: "Calibration") -> "Calibration":
        """With the newer one's phases, which take the place of the same ones here."""
        if newer.backend != self.backend:
            both = f"over {self.backend}, the other over {newer.backend}"
            raise BadInput(f"one calibration was taken {both}; they are not mixed, leave one out")
        kept = tuple(one for one in self.phases if newer.find(one.transport, one.phase) is None)
        return Calibration(self.backend, kept + newer.phases)

    @property
    def lines(self) -> Iterator[str]:
        """A sentence for each phase."""
        for one in self.phases:
            reached = ", ".join(f"{tier.efficiency:.0%} of {tier.tier}" for tier in one.reached)
            errors = f"mean error {one.error:.1%}, on settings left out {one.held_out_error:.1%}"
            taken = f"calibrated over {self.backend} on {one.machine}, {one.date}"
            start = f"start-up {one.start_seconds * 1e6:.1f} us"
            yield f"{one.transport} {one.phase}: {start}, {reached}; {taken}; {errors}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _check_count(name: str, value: int, least: int = 1) -> None:
    if not least <= value < 1 << 40:
        raise BadInput(f"{name} is {value}; give a whole number of at least {least}")


def _check_span(name: str, span: Span) -> None:
    if not 0 < span[0] <= span[1] < math.inf:
        raise BadInput(f"{name} is {span[0]} to {span[1]}; give the least and the most, above 0")


def _check_text(name: str, text: str) -> None:
    if not text.strip() or len(text) > LONGEST_TEXT or not text.isprintable():
        raise BadInput(f"{name} is {text[:60]!r}; give one line of 1 to {LONGEST_TEXT} characters")


def _check_date(where: str, text: str) -> None:
    try:
        found = calendar_date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.isoformat() != text:
        raise BadInput(f"{where}: date is {text[:40]!r}; give a day like 2026-01-15")
