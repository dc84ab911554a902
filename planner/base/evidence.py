"""Figures and what they rest on.

A `Rate` is bytes per second in one direction; it never travels without its evidence. One that was measured
keeps beside it what a line rate, preset or source stated: the one never replaces the other in silence.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner.base.errors import BadInput

EVIDENCE_KINDS = ("measured", "read", "imported", "preset", "assumed")  # from strongest to weakest


@dataclass(frozen=True)
class Evidence:
    """Where a figure comes from: one of EVIDENCE_KINDS, and the file, command or publication."""

    kind: str
    source: str

    def __post_init__(self) -> None:
        if self.kind not in EVIDENCE_KINDS:
            raise BadInput(f"evidence {self.kind!r} is not one of {', '.join(EVIDENCE_KINDS)}")
        if not self.source.strip():
            raise BadInput(f"evidence '{self.kind}' names no source; say which file, command or publication")


@dataclass(frozen=True)
class Rate:
    """Bytes per second, one direction. `stated` is what was said of it before it was measured."""

    bytes_per_s: float
    evidence: Evidence
    stated: "Rate | None" = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bytes_per_s) and self.bytes_per_s > 0):
            raise BadInput(
                f"a rate of {self.bytes_per_s} bytes/s ({self.evidence.source}) cannot be used; "
                "leave out a link that does not exist"
            )
        if self.stated is not None and (self.stated.stated or self.stated.evidence.kind == "measured"):
            raise BadInput(f"the stated rate beside {self.evidence.source} is itself a measured one")

    @property
    def as_stated(self) -> "Rate":
        """What was stated of it; itself where nothing else was."""
        return self.stated or self

    def measured_as(self, bytes_per_s: float, evidence: Evidence) -> "Rate":
        """What a measurement says of the same link, with what was stated of it beside."""
        stated = None if self.as_stated.evidence.kind == "measured" else self.as_stated
        return Rate(bytes_per_s, evidence, stated)


def sum_rates(rates: Iterable[Rate]) -> Rate:
    """The rates added up, and what was stated of them. The sum is as well founded as its weakest part."""
    rates = tuple(rates)
    stated = tuple(rate.as_stated for rate in rates)
    known = stated != rates and all(rate.evidence.kind != "measured" for rate in stated)
    total, evidence = sum(rate.bytes_per_s for rate in rates), weakest(rate.evidence for rate in rates)
    return Rate(total, evidence, sum_rates(stated) if known else None)


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """The one a reader should trust least; of equals the first."""
    return max(evidence, key=lambda one: EVIDENCE_KINDS.index(one.kind))


@dataclass(frozen=True)
class GpuModel:
    """Figures of one GPU model.

    `flops_per_s` is dense (no sparsity) by dtype, and a dtype that the GPU lacks is absent.
    """

    name: str
    memory_bytes: float
    memory_bytes_per_s: float
    flops_per_s: Mapping[str, float] = field(hash=False)
    evidence: Evidence

    def __post_init__(self) -> None:
        if not {"bf16", "fp16"} & set(self.flops_per_s):
            given = ", ".join(self.flops_per_s) or "none"
            raise BadInput(f"GPU model {self.name}: has neither a bf16 nor an fp16 rate, only {given}")
        figures = {"memory_bytes": self.memory_bytes, "memory_bytes_per_s": self.memory_bytes_per_s}
        figures |= {f"{dtype} rate": rate for dtype, rate in self.flops_per_s.items()}
        for name, value in figures.items():
            if not (math.isfinite(value) and value > 0):
                raise BadInput(f"GPU model {self.name}: {name} is {value}; it must be a positive number")

    def peak_flops_per_s(self, dtype: str) -> float:
        """The rate of `dtype`, or of the next wider type that the GPU has: fp8, then bf16, then fp16."""
        wider = ("fp8", "bf16", "fp16")
        order = wider[wider.index(dtype) :] + wider[1:]
        return next(self.flops_per_s[name] for name in order if name in self.flops_per_s)
