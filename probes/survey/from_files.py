"""From files that people have to one machine: every file read, one topology assembled, and what networks and benchmarks show beside it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.base import BadInput, parse_bandwidth
from planner.topology import Topology
from probes.base.facts import FabricFacts, Facts, HostFacts, MeasureFacts
from probes.fabric.shape import findings, name_hosts, shape_of
from probes.importers.registry import read_file
from probes.importers.sysfs import read_directory
from probes.machine.assemble import Hints, Imported, assemble
from probes.measure.busbw import bisection_bytes_per_s, out_of_place, rows
from probes.measure.fit import fit_facts

_NIC = re.compile(r"([0-9]{1,5})\s*[gG]")


@dataclass(frozen=True)
class Found:
    """What the sources show: the machine as far as they show one, and the networks and benchmarks among them."""

    machine: Imported
    fabrics: tuple[FabricFacts, ...] = ()
    measured: tuple[MeasureFacts, ...] = ()

    @property
    def topology(self) -> Topology:
        """BadInput with what is missing, where no topology can be made."""
        if self.machine.topology is None:
            raise BadInput(
                "no topology can be made of this: "
                + (
                    "; ".join(self.machine.unknown)
                    or "; ".join(self.machine.warnings)
                    or "no source shows a GPU"
                )
            )
        return self.machine.topology

    @property
    def measured_rows(self) -> list[tuple[str, ...]]:
        """A table with its header: which benchmark, then size, time, busbw and what each GPU sent; the benchmark is named on its first row."""
        table: list[tuple[str, ...]] = []
        for measured in self.measured:
            header, *samples = rows(measured)
            table = table or [("benchmark", *header)]
            name = f"{measured.kind} {measured.collective}, {measured.ranks} ranks, {measured.scope}"
            table += [(name if number == 0 else "", *sample) for number, sample in enumerate(samples)]
        return table

    @property
    def measured_bisections(self) -> list[tuple[str, float]]:
        """Which benchmark, and the bytes/s and direction that crossed between two halves of its ranks: as much is proven, links may carry more."""
        return [
            (f"{one.kind}, {one.ranks} ranks", bisection_bytes_per_s(one))
            for one in self.measured
            if _crosses_halves(one)
        ]

    @property
    def fits(self) -> list[tuple[str, str]]:
        """Which benchmark, and its start-up and rate with their residual, or why there is no line."""
        return [
            (f"{one.kind} {one.collective}, {one.ranks} ranks, {one.scope}", _fit_text(one))
            for one in self.measured
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.machine.to_dict(),
            "fabrics": [_fabric_to_dict(fabric) for fabric in self.fabrics],
            "measurements": [_measured_to_dict(measured) for measured in self.measured],
        }


def import_files(paths: Sequence[Path], hints: Hints) -> Found:
    """Everything the files say. BadInput where one is of no kind we know, or broken beyond use."""
    return find(
        [fact for path in paths for fact in (read_directory(path) if path.is_dir() else read_file(path))],
        hints,
    )


def find(facts: Sequence[Facts], hints: Hints) -> Found:
    """The machine of all facts. Sources without any GPU are no machine, but what they say is kept."""
    hosts = [fact for fact in facts if isinstance(fact, HostFacts)]
    facts = [name_hosts(fact, hosts) if isinstance(fact, FabricFacts) else fact for fact in facts]
    fabrics = tuple(fact for fact in facts if isinstance(fact, FabricFacts))
    measured = tuple(fact for fact in facts if isinstance(fact, MeasureFacts))
    shows_gpus = any(host.gpus for host in hosts)
    machine = assemble(facts, hints) if shows_gpus else _without_gpus(facts, measured)
    warnings = (
        *machine.warnings,
        *(sentence for fabric in fabrics for sentence in findings(shape_of(fabric))),
    )
    return Found(replace(machine, warnings=tuple(dict.fromkeys(warnings))), fabrics, measured)


def parse_nic(text: str | None) -> float | None:
    """Bytes per second of '400G' (Gbit/s, as NICs are sold) or of a rate with its unit."""
    if text is None:
        return None
    match = _NIC.fullmatch(text.strip())
    return float(match[1]) * 1e9 / 8 if match else parse_bandwidth(text)


def _without_gpus(facts: Sequence[Facts], measured: Sequence[MeasureFacts]) -> Imported:
    """NICs and hosts are listed; GPUs are the ranks of a benchmark, which may be fewer than the machine has."""
    ranks = max((fact.ranks for fact in measured), default=0)
    hosts = [fact for fact in facts if isinstance(fact, HostFacts)]
    ports = {port.host for fact in facts if isinstance(fact, FabricFacts) for port in fact.ports}
    names = [*dict.fromkeys(host.host for host in hosts if host.host), *sorted(ports)]
    counted = (
        "GPUs are counted as ranks of the benchmark; the machine may have more"
        if ranks
        else "no source shows a GPU"
    )
    return Imported(
        gpus=ranks,
        nvlink_domains=(),
        nics=sum(len(host.nics) for host in hosts),
        affinity={},
        hosts=tuple(names),
        kinds=tuple(dict.fromkeys(fact.kind for fact in facts)),
        unknown=(
            f"{counted}: add the output of 'nvidia-smi topo -m' of one host, or take a preset",
            *(line for fact in facts for line in fact.unknown),
        ),
        warnings=tuple(line for fact in facts for line in fact.warnings),
        topology=None,
    )


def _fabric_to_dict(fabric: FabricFacts) -> dict[str, Any]:
    shape = shape_of(fabric)
    return {
        "source": fabric.source,
        "kind": fabric.kind,
        "hosts": len({port.host for port in fabric.ports}),
        "leaves": len(shape.leaves),
        "spines": len(shape.spines),
        "rails": len(shape.rails),
        "worst_oversubscription": shape.worst_oversubscription,
        "blocks": {name: list(members) for name, members in fabric.blocks.items()},
    }


def _measured_to_dict(measured: MeasureFacts) -> dict[str, Any]:
    samples = out_of_place(measured)
    return {
        "source": measured.source,
        "kind": measured.kind,
        "collective": measured.collective,
        "ranks": measured.ranks,
        "scope": measured.scope,
        "peak_busbw_bytes_per_s": max((sample.busbw_bytes_per_s for sample in samples), default=None),
        "peak_wire_bytes_per_s": max((sample.wire_bytes_per_s for sample in samples), default=None),
        "average_busbw_bytes_per_s": measured.average_busbw_bytes_per_s,
        "bisection_bytes_per_s": bisection_bytes_per_s(measured) if _crosses_halves(measured) else None,
        "fit": _fit_to_dict(measured),
        "sizes": [sample.size_bytes for sample in samples],
    }


def _crosses_halves(measured: MeasureFacts) -> bool:
    """Whether it is an all-to-all of all ranks, which loads the cut between any two halves alike."""
    return (
        measured.collective == "alltoall"
        and measured.groups == 1
        and measured.ranks > 1
        and bool(out_of_place(measured))
    )


def _fit_text(measured: MeasureFacts) -> str:
    try:
        return fit_facts(measured).text
    except BadInput as none:
        return f"no line: {none}"


def _fit_to_dict(measured: MeasureFacts) -> dict[str, float] | None:
    """Seconds of start-up, bytes of the collective's own size per second, and the mean errors of sizes fitted and left out."""
    try:
        line = fit_facts(measured)
    except BadInput:
        return None
    return {
        "alpha_seconds": line.alpha_seconds,
        "bytes_per_s": line.bytes_per_s,
        "error": line.error,
        "held_out_error": line.held_out_error,
    }
