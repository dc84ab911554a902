"""What sources show, as a machine, tables and plain data: networks and benchmarks are put beside it."""

from dataclasses import dataclass
from typing import Any

from planner.base import BadInput, human_bandwidth
from planner.topology import Comparison, Topology, against_stated
from probes.base.facts import FabricFacts, MeasureFacts
from probes.fabric.shape import shape_of
from probes.machine.assemble import Imported
from probes.measure.all_to_all import all_to_all_of
from probes.measure.busbw import bisection_bytes_per_s, host_shares, out_of_place, rows
from probes.measure.fit import fit_facts


@dataclass(frozen=True)
class Found:
    """What the sources show: the machine as far as they show one, and the networks and benchmarks."""

    machine: Imported
    fabrics: tuple[FabricFacts, ...] = ()
    measured: tuple[MeasureFacts, ...] = ()

    @property
    def topology(self) -> Topology:
        """BadInput with what is missing, where no topology can be made."""
        if self.machine.topology is None:
            why = "; ".join(self.machine.unknown) or "; ".join(self.machine.warnings)
            raise BadInput(f"no topology can be made of this: {why or 'no source shows a GPU'}")
        return self.machine.topology

    @property
    def measured_rows(self) -> list[tuple[str, ...]]:
        """A table with its header: which benchmark, then size, time, busbw and what each GPU sent.

        The benchmark is named on its first row.
        """
        table: list[tuple[str, ...]] = []
        for measured in self.measured:
            header, *samples = rows(measured)
            table = table or [("benchmark", *header)]
            name = _name(measured)
            table += [(name if number == 0 else "", *sample) for number, sample in enumerate(samples)]
        return table

    @property
    def measured_bisections(self) -> list[tuple[str, float]]:
        """Which benchmark, and the bytes/s and direction that crossed between two halves of its ranks.

        As much is proven, links may carry more.
        """
        crossing = [one for one in self.measured if _crosses_halves(one)]
        return [(f"{one.kind}, {one.ranks} ranks", bisection_bytes_per_s(one)) for one in crossing]

    @property
    def comparisons(self) -> list[Comparison]:
        """What each all-to-all shows beside the stated rate of the links it had to wait for."""
        topology = self.machine.topology
        found = [_compared(topology, one) for one in self.measured] if topology is not None else []
        return [one for one in found if one is not None]

    @property
    def uncompared(self) -> list[str]:
        """What all-to-alls show of the way between hosts where there is no topology to hold it against."""
        if self.machine.topology is not None:
            return []
        return [text for one in self.measured if (text := _between_hosts(one))]

    @property
    def fits(self) -> list[tuple[str, str]]:
        """Which benchmark, and its start-up and rate with their residual, or why there is no line."""
        return [(_name(one), _fit_text(one)) for one in self.measured]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.machine.to_dict(),
            "fabrics": [_fabric_to_dict(fabric) for fabric in self.fabrics],
            "measurements": [_measured_to_dict(measured) for measured in self.measured],
            "comparisons": [one.to_dict() for one in self.comparisons],
        }


def _compared(topology: Topology, measured: MeasureFacts) -> Comparison | None:
    """None where it cannot be: the warnings of the machine say why it was not used."""
    if measured.kind == "torch-gloo":
        return None  # between CPU processes, which GPUs do not go through
    try:
        return against_stated(topology, all_to_all_of(topology, measured))
    except BadInput:
        return None


def _between_hosts(measured: MeasureFacts) -> str:
    """'3 GB/s a GPU to other hosts'; empty where the hosts of its ranks are not known."""
    shares, samples = host_shares(measured), out_of_place(measured)
    if shares is None or not shares.between > 0 or not samples or measured.kind == "torch-gloo":
        return ""
    largest = samples[-1]
    return f"{human_bandwidth(largest.size_bytes * shares.between / largest.seconds)} a GPU to other hosts"


def _name(measured: MeasureFacts) -> str:
    return f"{measured.kind} {measured.collective}, {measured.ranks} ranks, {measured.scope}"


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
    of_all = measured.collective == "alltoall" and measured.groups == 1 and measured.ranks > 1
    return of_all and bool(out_of_place(measured))


def _fit_text(measured: MeasureFacts) -> str:
    try:
        return fit_facts(measured).text
    except BadInput as none:
        return f"no line: {none}"


def _fit_to_dict(measured: MeasureFacts) -> dict[str, float] | None:
    """Seconds of start-up, bytes of the collective's own size per second, and mean errors.

    The errors are of sizes fitted and of sizes left out.
    """
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
