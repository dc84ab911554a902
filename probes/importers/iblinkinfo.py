"""`iblinkinfo`, in blocks or one line a port (-l): every link with width, signalling rate and both ends, most of them told twice."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.base.port_rates import signal_bytes_per_s
from probes.fabric.ib_graph import Box, Cable, End, fabric_facts
from probes.fabric.naming import normal_guid

_BLOCK = re.compile(r"(CA|Switch|Router):\s{1,9}(?:(0x[0-9a-fA-F]{1,16})\s{1,9})?(.{1,200}):")
_OWN = re.compile(
    r'(?:(0x[0-9a-fA-F]{1,16})\s{1,20})?(?:"([^"]{0,200})"\s{1,20})?(\d{1,6})\s{1,20}(\d{1,4})\['
)
_UP = re.compile(r"(\d{1,2})X\s{1,20}(\d{1,4}(?:\.\d{1,6})?) Gbps\s{1,9}(\w{1,20})/\s{0,9}(\w{1,20})")
_FAR = re.compile(
    r'\s{0,20}(?:(0x[0-9a-fA-F]{1,16})\s{1,20})?(\d{1,6})\s{1,20}(\d{1,4})\[[^\]]{0,9}\]\s{0,9}"([^"]{0,200})"'
)
_ARROW = b"==>"


def recognise(content: bytes, name: str) -> bool:
    """Whether it holds link lines."""
    return b"==(" in content and _ARROW in content


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """The subnet. Boxes are told apart by LID, since a block of a switch names its neighbours by LID and name alone."""
    seen = _scan(content.decode("utf-8-sig", "replace"))
    if not seen.rates:
        raise BadInput(
            f"{name}: no active link in it ({seen.down} are down, {len(seen.broken)} lines cannot be read); run iblinkinfo where the subnet is up"
        )
    keys = seen.keys()
    cables, differ = [], 0
    for ends, rates in seen.rates.items():
        known = [rate for rate in rates if rate is not None]
        differ += len(set(known)) > 1
        first, second = (End(keys[lid], port, seen.guids.get((lid, port))) for lid, port in ends)
        cables.append(Cable((first, second), min(known, default=None)))
    facts = fabric_facts(seen.boxes(keys), cables, name, "iblinkinfo")
    unknown, warnings = list(facts.unknown), [*facts.warnings, *seen.slow[:20]]
    if len(seen.slow) > 20:
        warnings.append(f"... and {len(seen.slow) - 20} more links that are slow or not active")
    if seen.broken:
        unknown.append(
            f"{len(seen.broken)} lines cannot be read, the first is line {seen.broken[0]}: the text may be cut short, and links be missing"
        )
    absent = sorted(seen.described[lid] for lid in set(seen.described) - seen.own)
    if absent:
        unknown.append(
            f"{len(absent)} switches or adapters are named by a neighbour but have no block: {', '.join(absent[:10])}; links between them may be missing"
        )
    one_sided = sum(
        len(rates) == 1 and {lid for lid, _ in ends} <= seen.own for ends, rates in seen.rates.items()
    )
    if one_sided:
        unknown.append(
            f"{one_sided} links are told by one end only although the other has a block too: the text may be cut short"
        )
    if differ:
        warnings.append(f"{differ} cables have another rate at each end: the lower is taken")
    return (replace(facts, unknown=tuple(unknown), warnings=tuple(warnings)),)


@dataclass
class _Seen:
    """What the lines said, by LID. `rates` has what each end tells of a cable."""

    described: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)  # LIDs with a block
    switches: set[str] = field(default_factory=set)
    adapters: set[str] = field(default_factory=set)
    guids: dict[tuple[str, str], str] = field(default_factory=dict)
    rates: dict[tuple[tuple[str, str], tuple[str, str]], list[float | None]] = field(default_factory=dict)
    slow: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    down: int = 0

    def keys(self) -> dict[str, str]:
        """The GUID of each LID's first port that tells one, else the LID itself."""
        told = {lid: guid for (lid, _), guid in sorted(self.guids.items(), reverse=True)}
        return {lid: told.get(lid, f"lid {lid}") for lid in self.described}

    def boxes(self, keys: dict[str, str]) -> dict[str, Box]:
        """Without a block that says what it is, a box is a switch where it has a switch's name or more than two links."""
        links = Counter(lid for pair in self.rates for lid, _ in pair)
        found = {}
        for lid, description in sorted(self.described.items()):
            likely = description.startswith("MF0;") or links[lid] > 2
            found[keys[lid]] = Box(lid in self.switches or (likely and lid not in self.adapters), description)
        return found


def _scan(text: str) -> _Seen:
    seen, kind, described = _Seen(), "", ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if block := _BLOCK.fullmatch(stripped):
            kind, described = block[1], block[3]
        elif ("==(" in stripped or _OWN.match(stripped)) and not _link(seen, kind, described, stripped):
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
    lid, far_lid = own[3], far[2]
    seen.described[lid] = own[2] or described or seen.described.get(lid, "")
    seen.described.setdefault(far_lid, far[4])
    seen.own.add(lid)
    for which, guid, port in ((lid, own[1], own[4]), (far_lid, far[1], far[3])):
        if guid and (normal := normal_guid(guid)):
            seen.guids[which, port] = normal
    if kind:
        (seen.adapters if kind == "CA" else seen.switches).add(lid)
    ends = ((lid, own[4]), (far_lid, far[3]))
    if state[3] != "Active":
        seen.slow.append(f"{seen.described[lid]} port {own[4]}: the link is {state[3]}, not active: left out")
        return True
    seen.rates.setdefault((min(ends), max(ends)), []).append(signal_bytes_per_s(state[1], state[2]))
    could = re.search(r"\( ?Could be ([^)]{1,40})\)", line[far.end() :])
    if could:
        seen.slow.append(
            f"{seen.described[lid]} port {own[4]} to {far[4]}: runs at {state[1]}X {state[2]} Gbps and could be {could[1].strip()}"
        )
    return True
