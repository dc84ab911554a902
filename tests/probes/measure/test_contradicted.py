"""A benchmark of too few sizes whose rates contradict the stated ones is never lost in silence."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from planner.planning.lookup import find_topology
from planner.topology import MEASURED_OTHERWISE, read_topology, topology_from_dict
from probes.base.facts import MeasureFacts, Sample
from probes.machine.assemble import assemble
from probes.machine.hints import NO_HINTS
from probes.survey.onto import put_onto
from probes.survey.sources import Sources
from tests.probes.machine.told import HINTS, matrix, topology

SIZES = (1 << 29, 1 << 30)


def run(bytes_per_s: float, sizes: tuple[int, ...] = SIZES) -> MeasureFacts:
    """An all-to-all of two hosts of 8, each GPU of which sends so much to the other host."""
    samples = tuple(Sample(size, size / 2 / bytes_per_s, 1e9, 1e9, 1e9, in_place=False) for size in sizes)
    return MeasureFacts("a.log", "nccl-tests", "alltoall", 16, ("n0",) * 8 + ("n1",) * 8, samples=samples)


def faults(measured: MeasureFacts) -> list[str]:
    machine = topology(assemble([matrix(), measured], HINTS))
    assert {node.faults for node in machine.nodes} == {machine.nodes[0].faults}
    assert topology_from_dict(machine.to_dict(), "x").nodes == machine.nodes
    return list(machine.nodes[0].faults)


def test_two_rows_that_contradict_go_into_the_file() -> None:
    """A tenth of the NICs' rate: on every node, in the file, and in what a plan says."""
    (fault,) = faults(run(5e9))
    assert fault.startswith(f"{MEASURED_OTHERWISE}a.log shows 5 of the stated 50 GB/s a NIC (10 %)")
    machine = topology(assemble([matrix(), run(5e9)], HINTS))
    _, notes = find_topology(machine)
    assert any(
        note.startswith("WARNING: planned with the stated rates, though a.log shows 5") for note in notes
    )


def test_two_rows_that_agree_say_nothing() -> None:
    """45 of 50 GB/s is what an all-to-all reaches."""
    assert faults(run(45e9)) == []


def test_a_sweep_is_taken_instead() -> None:
    """Three sizes on a line become the rate."""
    assert faults(run(5e9, (1 << 28, *SIZES))) == []


def test_onto_a_preset_the_refusal_says_it() -> None:
    """Nothing is written, and the reason names what was seen."""
    base = read_topology("hgx-h100:2")
    sources = Sources(base, "preset:hgx-h100:2", (), (replace(run(5e9), hosts=()),))
    with pytest.raises(BadInput, match=r"at least 3 sizes.*it shows 5 of the stated 50 GB/s"):
        put_onto(base, sources, NO_HINTS)
