"""What busbw means: per-GPU rates inside and between hosts, and the bisection, worked out by hand."""

from dataclasses import replace

import pytest

from planner.base import BadInput
from probes.base.facts import MeasureFacts, Sample
from probes.measure.busbw import COLLECTIVES, Shares, bisection_bytes_per_s, bus_factor, host_shares, rows

# 2 hosts of 8, 16 MB in 200 us: algbw 80 GB/s, busbw 75 GB/s; of the 16 MB each rank sends 7/16 inside and
# 8/16 between
SIZE, SECONDS = 16_000_000, 200e-6
SAMPLE = Sample(SIZE, SECONDS, 80e9, 75e9, 75e9, in_place=False)
TWO_HOSTS = MeasureFacts(
    "x",
    "nccl-tests",
    "alltoall",
    16,
    ("a",) * 8 + ("b",) * 8,
    samples=(SAMPLE, replace(SAMPLE, in_place=True)),
)


def test_factors_are_those_of_nccl_tests() -> None:
    """For 4 ranks; a single rank sends nothing; what is not known has none."""
    assert {name: bus_factor(name, 4) for name in COLLECTIVES} == {
        **dict.fromkeys(("alltoall", "allgather", "reducescatter", "gather", "scatter", "hypercube"), 0.75),
        "allreduce": 1.5,
        "broadcast": 1.0,
        "reduce": 1.0,
        "sendrecv": 1.0,
    }
    assert {bus_factor(name, 1) for name in COLLECTIVES} == {0.0}
    assert bus_factor("alltoallv", 4) is bus_factor("alltoall", 0) is None


def test_the_parts_inside_and_between_hosts() -> None:
    """Of 16 ranks 7 mates are here and 8 elsewhere; a rail has none here; a domain of one host all."""
    assert host_shares(TWO_HOSTS) == Shares(7 / 16, 8 / 16)
    assert host_shares(replace(TWO_HOSTS, scope="rail", groups=8)) == Shares(0, 1 / 2)
    assert host_shares(replace(TWO_HOSTS, scope="domain", groups=2)) == Shares(7 / 8, 0)
    assert (
        host_shares(replace(TWO_HOSTS, scope="domain", groups=1)) is None
    )  # a domain over both hosts: NVLink between them


@pytest.mark.parametrize(
    "facts",
    [
        replace(TWO_HOSTS, collective="allreduce"),
        replace(TWO_HOSTS, hosts=()),
        replace(TWO_HOSTS, hosts=("a",) * 9 + ("b",) * 7),
        replace(TWO_HOSTS, groups=2),
    ],
)
def test_no_parts_are_made_up(facts: MeasureFacts) -> None:
    """Another collective, hosts that are not known or not alike, groups of unknown shape."""
    assert host_shares(facts) is None


def test_a_busbw_above_the_nic_is_explained_by_the_columns() -> None:
    """Busbw 75 GB/s, of which a 50 GB/s NIC carried 40."""
    header, row = rows(TWO_HOSTS)
    assert header == ("size", "time", "busbw", "sent per GPU", "within its host", "to other hosts")
    assert row == ("16 MB", "200 us", "75 GB/s", "75 GB/s", "35 GB/s", "40 GB/s")
    assert rows(replace(TWO_HOSTS, hosts=()))[1][-2:] == ("?", "?")


def test_the_bisection_is_what_crossed_the_halves() -> None:
    """8 ranks send 1 MB each to 8 others: 64 MB in 200 us, 320 GB/s, which is 8 NICs at 40."""
    assert bisection_bytes_per_s(TWO_HOSTS) == pytest.approx(8 * 40e9)
    slower = replace(SAMPLE, seconds=1.0)
    assert bisection_bytes_per_s(replace(TWO_HOSTS, samples=(SAMPLE, slower))) == pytest.approx(320e9)
    with pytest.raises(BadInput, match="measured by an all-to-all over all ranks; this is 8 x alltoall"):
        bisection_bytes_per_s(replace(TWO_HOSTS, groups=8, scope="rail"))


def test_an_odd_number_of_ranks_has_unequal_halves() -> None:
    """1 and 2 of 3 ranks: 2 messages of a third each way."""
    facts = replace(TWO_HOSTS, ranks=3, hosts=(), samples=(replace(SAMPLE, size_bytes=3, seconds=1.0),))
    assert bisection_bytes_per_s(facts) == pytest.approx(2)
