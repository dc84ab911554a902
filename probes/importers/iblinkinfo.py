"""`iblinkinfo`, in blocks or one line a port (-l): every link with width, signalling rate and both ends."""

import re
from collections import Counter
from dataclasses import dataclass, field

from planner.base import BadInput
from probes.base.facts import FabricFacts, noted
from probes.base.port_rates import signal_bytes_per_s
from probes.fabric.ib_graph import Box, End, Place, cables_told, fabric_facts
from probes.fabric.naming import normal_guid

_BLOCK = re.compile(r"(CA|Switch|Router):\s{1,9}(?:(0x[0-9a-fA-F]{1,16})\s{1,9})?(.{1,200}):")
_OWN = re.compile(
    r'(?:(0x[0-9a-fA-F]{1,16})\s{1,20})?(?:"([^"]{0,200})"\s{1,20})?(\d{1,6})\s{1,20}(\d{1,4})\['
)
_UP = re.compile(r"(\d{1,2})X\s{1,20}(\d{1,4}(?:\.\d{1,6})?) Gbps\s{1,9}(\w{1,20})/\s{0,9}(\w{1,20})")
_FAR = re.compile(
    r"\s{0,20}(?:(0x[0-9a-fA-F]{1,16})\s{1,20})?(\d{1,6})\s{1,20}(\d{1,4})"
    r'\[[^\]]{0,9}\]\s{0,9}"([^"]{0,200})"'
)
_ARROW = b"==>"
Words = re.Match[str]


def recognise(content: bytes, name: str) -> bool:
    """Whether it holds link lines."""
    return b"==(" in content and _ARROW in content


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """The subnet.

    Boxes are told apart by LID, since a block of a switch names its neighbours by LID and name alone.
    """
    seen = _scan(content.decode("utf-8-sig", "replace"))
    if not seen.rates:
        raise BadInput(
            f"{name}: no active link in it ({seen.down} are down, {len(seen.broken)} lines cannot be read); "
            "run iblinkinfo where the subnet is up"
        )
    keys = seen.keys()
    cables, differ = cables_told(
        seen.rates, lambda lid, port: End(keys[lid], port, seen.guids.get((lid, port)))
    )
    facts = fabric_facts(seen.boxes(keys), cables, name, "iblinkinfo")
    slow = seen.slow[:20]
    if len(seen.slow) > 20:
        slow.append(f"... and {len(seen.slow) - 20} more links that are slow or not active")
    return (noted(facts, _missing(seen), [*slow, *differ]),)


@dataclass
class _Seen:
    """What the lines said, by LID. `rates` has what each end tells of a cable."""

    described: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)  # LIDs with a block
    switches: set[str] = field(default_factory=set)
    adapters: set[str] = field(default_factory=set)
    guids: dict[Place, str] = field(default_factory=dict)
    rates: dict[tuple[Place, Place], list[float | None]] = field(default_factory=dict)
    slow: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    down: int = 0

    def keys(self) -> dict[str, str]:
        """The GUID of each LID's first port that tells one, else the LID itself."""
        told = {lid: guid for (lid, _), guid in sorted(self.guids.items(), reverse=True)}
        return {lid: told.get(lid, f"lid {lid}") for lid in self.described}

    def boxes(self, keys: dict[str, str]) -> dict[str, Box]:
        """A box without a block is a switch where it has a switch's name or more than two links."""
        links = Counter(lid for pair in self.rates for lid, _ in pair)
        found = {}
        for lid, description in sorted(self.described.items()):
            likely = description.startswith("MF0;") or links[lid] > 2
            found[keys[lid]] = Box(lid in self.switches or (likely and lid not in self.adapters), description)
        return found


def _scan(text: str) -> _Seen:
    """What each line says. A last line that is none of ours was cut short before it said what it is."""
    seen, kind, described = _Seen(), "", ""
    lines = [line.strip() for line in text.splitlines()]
    for number, line in enumerate(lines, 1):
        if block := _BLOCK.fullmatch(line):
            kind, described = block[1], block[3]
        elif "==(" in line or _OWN.match(line):
            if not _link(seen, kind, described, line):
                seen.broken.append(number)
        elif line and number == len(lines):
            seen.broken.append(number)
    return seen


def _link(seen: _Seen, kind: str, described: str, line: str) -> bool:
    """Take one link line in; False where it is not whole. A port that is down is whole and no link."""
    start, end, own = line.find("==("), line.find(")==>"), _OWN.match(line)
    if not 0 <= start < end or own is None:
        return False
    link = line[start + 3 : end].strip()
    state = _UP.fullmatch(link)
    if state is None:
        seen.down += 1
        return "Down" in link
    far = _FAR.match(line, end + 4)
    if far is None:
        return False
    lid = own[3]
    seen.described[lid] = own[2] or described or seen.described.get(lid, "")
    seen.own.add(lid)
    if kind:
        (seen.adapters if kind == "CA" else seen.switches).add(lid)
    _up(seen, own, state, far, line[far.end() :])
    return True


def _up(seen: _Seen, own: Words, state: Words, far: Words, rest: str) -> None:
    """Take a link in that is up: its own end, width and rate, far end, and what follows on the line."""
    near, other = (own[3], own[4]), (far[2], far[3])
    seen.described.setdefault(far[2], far[4])
    for end, guid in ((near, own[1]), (other, far[1])):
        if guid and (normal := normal_guid(guid)):
            seen.guids[end] = normal
    here = f"{seen.described[own[3]]} port {own[4]}"
    if state[3] != "Active":
        seen.slow.append(f"{here}: the link is {state[3]}, not active: left out")
        return
    ends = min(near, other), max(near, other)
    seen.rates.setdefault(ends, []).append(signal_bytes_per_s(state[1], state[2]))
    could = re.search(r"\( ?Could be ([^)]{1,40})\)", rest)
    if could:
        best = could[1].strip()
        seen.slow.append(f"{here} to {far[4]}: runs at {state[1]}X {state[2]} Gbps and could be {best}")


def _missing(seen: _Seen) -> list[str]:
    """What a cut took from the links."""
    unknown = []
    if seen.broken:
        unknown.append(
            f"{len(seen.broken)} lines cannot be read, the first is line {seen.broken[0]}: "
            "the text may be cut short, and links be missing"
        )
    absent = sorted(seen.described[lid] for lid in set(seen.described) - seen.own)
    if absent:
        named = ", ".join(absent[:10])
        unknown.append(
            f"{len(absent)} switches or adapters are named by a neighbour but have no block: {named}; "
            "links between them may be missing"
        )
    one_sided = sum(
        len(rates) == 1 and {lid for lid, _ in ends} <= seen.own for ends, rates in seen.rates.items()
    )
    if one_sided:
        unknown.append(
            f"{one_sided} links are told by one end only although the other has a block too: "
            "the text may be cut short"
        )
    return unknown
