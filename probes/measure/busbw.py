"""What a collective benchmark's figures mean for the links. Pure.

That is busbw, the bytes that each GPU sends, and where they go. In an all-to-all over n ranks of `size` bytes
each rank keeps size/n and sends size/n to each other: size·(n-1)/n in all, which busbw counts. Of that, on N
hosts of G ranks, size·(G-1)/n stays inside the host and size·(N-1)/N leaves it. So a busbw above the NIC's
rate is no contradiction.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.base import BadInput, human_bandwidth, human_bytes, human_seconds
from probes.base.facts import MeasureFacts, Sample

SENTENCE = (
    "busbw counts every byte a GPU sends, over NVLink and NIC together, "
    "so between hosts it is not the rate of a NIC; "
    "the per-GPU columns say what really went each way."
)


def _all_but_own(ranks: int) -> float:
    return (ranks - 1) / ranks


def _twice(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


def _once(ranks: int) -> float:
    return 1.0 if ranks > 1 else 0.0


# busbw / algbw, as nccl-tests defines it: for rings the bytes that each rank sends for each byte of `size`
# (for in-network reduction fewer are sent)
_FACTORS: Mapping[str, Callable[[int], float]] = {
    "alltoall": _all_but_own,
    "allgather": _all_but_own,
    "reducescatter": _all_but_own,
    "gather": _all_but_own,
    "scatter": _all_but_own,
    "hypercube": _all_but_own,
    "allreduce": _twice,
    "broadcast": _once,
    "reduce": _once,
    "sendrecv": _once,
}
COLLECTIVES = tuple(_FACTORS)


def bus_factor(collective: str, ranks: int) -> float | None:
    """The ratio busbw / algbw of a collective over so many ranks; None where it is not known.

    >>> bus_factor("alltoall", 4)
    0.75
    """
    return _FACTORS[collective](ranks) if collective in _FACTORS and ranks > 0 else None


@dataclass(frozen=True)
class Shares:
    """The parts of an all-to-all's `size` that each rank sends to ranks of its own host and of others."""

    inside: float
    between: float


def host_shares(facts: MeasureFacts) -> Shares | None:
    """None where it is no all-to-all, or the hosts of its ranks are not known or not alike.

    Nor is there any where a domain spans hosts.
    """
    per_host = set(Counter(facts.hosts).values())
    hosts_known = len(facts.hosts) == facts.ranks and len(per_host) == 1
    if facts.collective != "alltoall" or facts.ranks < 2 or not hosts_known:
        return None
    ranks, here = facts.ranks // facts.groups, min(per_host)
    if (facts.scope == "all" and facts.groups > 1) or (facts.scope == "domain" and here % ranks):
        return None
    mates = {"all": here, "rail": 1, "domain": ranks}[facts.scope]
    return Shares((mates - 1) / ranks, (ranks - mates) / ranks)


def rows(facts: MeasureFacts) -> list[tuple[str, ...]]:
    """A table with its header: size, time, busbw, and what each GPU sent.

    That is in all, to its own host and to other hosts ('?' where hosts are not known).
    """
    header = ("size", "time", "busbw", "sent per GPU", "within its host", "to other hosts")
    shares = host_shares(facts)
    return [header, *(_row(sample, shares) for sample in out_of_place(facts))]


def _row(sample: Sample, shares: Shares | None) -> tuple[str, ...]:
    size, taken = human_bytes(sample.size_bytes), human_seconds(sample.seconds)
    busbw, sent = human_bandwidth(sample.busbw_bytes_per_s), human_bandwidth(sample.wire_bytes_per_s)
    if shares is None:
        return size, taken, busbw, sent, "?", "?"
    return size, taken, busbw, sent, _rate(sample, shares.inside), _rate(sample, shares.between)


def _rate(sample: Sample, share: float) -> str:
    return human_bandwidth(sample.size_bytes * share / sample.seconds) if share > 0 else "-"


def out_of_place(facts: MeasureFacts) -> tuple[Sample, ...]:
    """The samples that are like an expert dispatch: from one buffer into another, by size."""
    samples = [sample for sample in facts.samples if not sample.in_place]
    return tuple(sorted(samples, key=lambda sample: (sample.size_bytes, sample.seconds)))


def bisection_bytes_per_s(facts: MeasureFacts) -> float:
    """Bytes that crossed between the two halves of an all-to-all of all ranks, per second and direction.

    It is of the size where that was fastest. Each of the h ranks of one half sends size/n to each of the n-h
    of the other. What the links could carry may be more: this much is proven.
    """
    samples = out_of_place(facts)
    if facts.collective != "alltoall" or facts.groups != 1 or facts.ranks < 2 or not samples:
        needed = "the bisection is measured by an all-to-all over all ranks"
        raise BadInput(f"{facts.source}: {needed}; this is {facts.groups} x {facts.collective}")
    ranks, half = facts.ranks, facts.ranks // 2
    return max(sample.size_bytes * half * (ranks - half) / ranks / sample.seconds for sample in samples)
