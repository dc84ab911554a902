"""Where each link of a topology is shaped, and which way packets take from rank to rank. Pure.

Each directed resource is held to its rate at one place:

* one that a single rank uses, first of all its ways out, on what that rank sends: there TCP itself feels it;
* one that a single rank uses, last of all its ways in, on what that rank is handed;
* any other (a NIC of several GPUs, PCIe before a NIC, uplinks) in a pipe of its own between the ranks' links.

A resource that no pair uses is not made. Resources are indices into `topology.resources`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations

from planner.topology import Topology

Route = tuple[int, ...]


@dataclass(frozen=True)
class Shaper:
    """A resource that is held to its rate at the link of `rank`, in its traffic with `peers`."""

    resource: int
    rank: int
    peers: tuple[int, ...]


@dataclass(frozen=True)
class Hop:
    """Packets for `target` go into the pipe `into`, or where it is None to their rank.

    They come out of the pipe `after`, or where it is None from the rank `source`. `source` None: whoever
    sent them.
    """

    after: int | None
    source: int | None
    target: int
    into: int | None


@dataclass(frozen=True)
class Wiring:
    """All of it: shapers at the ranks' links, pipes between them, and the hops that join them."""

    ranks: int
    sending: tuple[Shaper, ...]
    receiving: tuple[Shaper, ...]
    pipes: tuple[int, ...]
    hops: tuple[Hop, ...]


def wiring_of(topology: Topology) -> Wiring:
    """What follows from the routes of a topology.

    Two GPUs behind one switch each have their NVLink out held where they send and their NVLink in where they
    are handed: no pipes, and one hop from each to the other.
    """
    ranks = topology.gpu_count
    routes = {pair: topology.route(*pair) for pair in permutations(range(ranks), 2)}
    sending = _shapers(routes, at=0)
    taken = {shaper.resource for shaper in sending}
    receiving = tuple(shaper for shaper in _shapers(routes, at=-1) if shaper.resource not in taken)
    taken |= {shaper.resource for shaper in receiving}
    used = {resource for route in routes.values() for resource in route}
    hops = _hops({pair: tuple(one for one in route if one not in taken) for pair, route in routes.items()})
    return Wiring(ranks, sending, receiving, tuple(sorted(used - taken)), hops)


def _shapers(routes: Mapping[tuple[int, int], Route], at: int) -> tuple[Shaper, ...]:
    """The resources that are first (`at` 0) or last (-1) on every way that uses them, all of one rank."""
    ends: dict[int, set[int]] = {}  # resource -> the ranks at whose end it sits
    elsewhere: set[int] = set()
    peers: dict[int, list[int]] = {}
    for pair, route in routes.items():
        for place, resource in enumerate(route):
            if place == (0 if at == 0 else len(route) - 1):
                ends.setdefault(resource, set()).add(pair[at])
                peers.setdefault(resource, []).append(pair[-1 - at])
            else:
                elsewhere.add(resource)
    return tuple(
        Shaper(resource, next(iter(ranks)), tuple(sorted(peers[resource])))
        for resource, ranks in sorted(ends.items())
        if len(ranks) == 1 and resource not in elsewhere
    )


def _hops(ways: Mapping[tuple[int, int], Route]) -> tuple[Hop, ...]:
    """From each rank and out of each pipe, by target; by source too only where sources part ways."""
    nexts: dict[tuple[int, int], dict[int, int | None]] = {}  # (after, target) -> source -> into
    hops = []
    for (source, target), way in ways.items():
        first, *others = (*way, None)
        hops.append(Hop(None, source, target, first))
        for after, into in zip(way, others, strict=True):
            nexts.setdefault((after, target), {})[source] = into
    for (after, target), into_of in nexts.items():
        hops += _merged(after, target, into_of)
    return tuple(hops)


def _merged(after: int, target: int, into_of: Mapping[int, int | None]) -> Iterable[Hop]:
    if len(set(into_of.values())) == 1:
        return [Hop(after, None, target, next(iter(into_of.values())))]
    return [Hop(after, source, target, into) for source, into in into_of.items()]
