"""Do the ranks sit where the plan has them? Expected seats against seen ones, before anything is served.

A seat is what one rank sees: its host, its number on that host, and its GPU's UUID (None where nobody could
tell). Values only; `probes.nvml.seat` looks.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from planner.base import BadInput, read_json
from planner.schema import Flag, Kind, Listing, Maybe, Record, Text, Whole
from planner.topology.machine import LARGEST_GPUS
from planner.topology.topology import Topology

SCHEMA = "moeplan/seats/1"
SHOWN = 8
_RANK, _SENTENCES = Whole(0, LARGEST_GPUS - 1), Listing(Text())
_SEAT = Record({"rank": _RANK, "host": Text(longest=300), "local": _RANK}, {"uuid": Maybe(Text(longest=200))})
SEATS = Kind(
    "a seats file",
    SCHEMA,
    "`moeplan check --live PLAN --json` prints one",
    Record(
        {"schema": Text((SCHEMA,)), "seats": Listing(_SEAT, 1, LARGEST_GPUS)},
        {"ok": Flag(), "mismatches": _SENTENCES, "unchecked": _SENTENCES},
    ),
)


@dataclass(frozen=True)
class Seat:
    """`host` None: the plan does not say which, only that ranks of one node share it and others do not."""

    rank: int
    host: str | None
    local: int
    node: int | None = None
    uuid: str | None = None


@dataclass(frozen=True)
class LiveReport:
    """`mismatches` is empty where every rank sits as planned; `unchecked` says what could not be compared."""

    seen: tuple[Seat, ...]
    mismatches: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.mismatches

    def text(self) -> str:
        bad = [f"bad: {line}" for line in self.mismatches[:SHOWN]]
        if len(self.mismatches) > SHOWN:
            bad.append(f"bad: and {len(self.mismatches) - SHOWN} more")
        verdict = f"{len(self.mismatches)} mismatches; do not serve"
        if self.ok:
            verdict = f"ok: {len(self.seen)} ranks sit as planned"
        return "\n".join([*bad, *(f"not checked: {line}" for line in self.unchecked), verdict])

    def to_dict(self) -> dict[str, Any]:
        seats = [{key: value for key, value in asdict(seat).items() if key != "node"} for seat in self.seen]
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "mismatches": list(self.mismatches),
            "unchecked": list(self.unchecked),
            "seats": seats,
        }


def planned_seats(topology: Topology, hosts: Sequence[str] = ()) -> tuple[Seat, ...]:
    """The plan's seats: ranks node by node.

    `hosts` names the nodes in the plan's order; empty: any distinct hosts will do.
    """
    names = hosts or (None,) * topology.node_count
    return tuple(Seat(gpu.rank, names[gpu.node], gpu.index, gpu.node) for gpu in topology.gpus)


def compare(expected: Sequence[Seat], seen: Sequence[Seat]) -> LiveReport:
    """Every mismatch, by rank. Host names that differ in their domain alone are one host."""
    by_rank = {seat.rank: seat for seat in seen}
    problems = [
        f"rank {seat.rank} was seen, the plan has the ranks 0 to {len(expected) - 1}"
        for seat in seen
        if seat.rank >= len(expected)
    ]
    if len(by_rank) != len(seen):
        problems.append(f"{len(seen)} seats carry {len(by_rank)} distinct ranks; each rank may sit once")
    for want in expected:
        got = by_rank.get(want.rank)
        problems += [f"rank {want.rank} was not seen"] if got is None else _differences(want, got)
    pairs = [(want, by_rank[want.rank]) for want in expected if want.rank in by_rank]
    problems += _mixed_nodes(pairs) + _shared_gpus([got for _, got in pairs])
    unchecked = _unchecked(expected, [got for _, got in pairs])
    return LiveReport(tuple(sorted(seen, key=lambda seat: seat.rank)), tuple(problems), tuple(unchecked))


def _unchecked(expected: Sequence[Seat], seen: Sequence[Seat]) -> list[str]:
    """What could not be compared, and how it could be."""
    found = []
    if any(want.host is None for want in expected):
        found.append("which host each node is: the plan names none; give --hosts in the plan's node order")
    blind = [got.rank for got in seen if got.uuid is None]
    if blind:
        found.append(f"GPU UUIDs of {len(blind)} ranks (first: rank {blind[0]}): NVML told none")
    elif any(want.uuid is None for want in expected):
        found.append(
            "which GPU of its host each rank has: no UUIDs are on record; "
            "save this run's --json and give it as --seats next time"
        )
    return found


def seats_from_dict(value: Any, where: str) -> tuple[Seat, ...]:
    """The seats that `moeplan check --live --json` printed."""
    SEATS.check(value, where)
    return tuple(seat_from_dict(seat, f"{where}: seat {index}") for index, seat in enumerate(value["seats"]))


def seat_from_dict(value: Any, where: str) -> Seat:
    _SEAT.check(value, where)
    return Seat(value["rank"], value["host"], value["local"], uuid=value.get("uuid"))


def recorded_seats(planned: Sequence[Seat], path: str | Path) -> tuple[Seat, ...]:
    """The plan's seats with the hosts and UUIDs of an earlier start.

    BadInput where that one had other ranks.
    """
    recorded = {seat.rank: seat for seat in seats_from_dict(read_json(path), str(path))}
    if sorted(recorded) != [seat.rank for seat in planned]:
        asked = "record a start of this plan"
        raise BadInput(f"{path}: holds {len(recorded)} ranks, the plan has {len(planned)}; {asked}")
    return tuple(
        replace(seat, host=recorded[seat.rank].host, uuid=recorded[seat.rank].uuid) for seat in planned
    )


def _differences(want: Seat, got: Seat) -> list[str]:
    found = []
    if want.host is not None and not _same_host(want.host, got.host or ""):
        found.append(f"rank {want.rank} runs on host {got.host}, the plan has it on {want.host}")
    if want.local != got.local:
        found.append(f"rank {want.rank} is number {got.local} on its host, the plan has it at {want.local}")
    if want.uuid is not None and got.uuid is not None and want.uuid != got.uuid:
        found.append(f"rank {want.rank} has GPU {got.uuid}, expected {want.uuid}")
    return found


def _mixed_nodes(pairs: Sequence[tuple[Seat, Seat]]) -> list[str]:
    """Ranks of one planned node belong on one host, those of two nodes on two.

    Asked only where the plan names no hosts.
    """
    host_of: dict[int, Seat] = {}
    node_of: dict[str, Seat] = {}
    found = []
    for want, got in pairs:
        if want.host is not None or want.node is None or got.host is None:
            continue
        first = host_of.setdefault(want.node, got)
        if first.host != got.host:
            ranks = f"ranks {first.rank} and {got.rank}"
            found.append(f"{ranks} belong on one node, and run on hosts {first.host} and {got.host}")
        other = node_of.setdefault(got.host, want)
        if other.node != want.node:
            ranks = f"ranks {other.rank} and {want.rank}"
            found.append(f"{ranks} belong on different nodes, and both run on host {got.host}")
    return found


def _shared_gpus(seen: Sequence[Seat]) -> list[str]:
    holder: dict[str, int] = {}
    return [
        f"ranks {holder[seat.uuid]} and {seat.rank} have the same GPU {seat.uuid}"
        for seat in seen
        if seat.uuid is not None and holder.setdefault(seat.uuid, seat.rank) != seat.rank
    ]


def _same_host(one: str, other: str) -> bool:
    one, other = one.lower(), other.lower()
    if "." in one and "." in other:
        return one == other
    return one.split(".", maxsplit=1)[0] == other.split(".", maxsplit=1)[0]
