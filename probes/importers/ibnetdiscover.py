"""`ibnetdiscover`: every switch and adapter of an InfiniBand subnet with its cables, each cable told by both of its ends."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.base.port_rates import lanes_bytes_per_s
from probes.fabric.ib_graph import Box, Cable, End, fabric_facts
from probes.fabric.naming import is_aggregation, normal_guid

_BOX = re.compile(
    r'(Switch|Ca|Rt)\s{1,20}(\d{1,4})\s{1,20}"[SHR]-([0-9a-fA-F]{1,16})"\s{0,40}#\s{0,9}"([^"]{0,200})"'
)
_PORT = re.compile(
    r'\[(\d{1,4})\](?:\[ext \d{1,4}\])?(?:\(([0-9a-fA-F]{1,16})\))?\s{1,40}"([SHR])-([0-9a-fA-F]{1,16})"\[(\d{1,4})\](?:\[ext \d{1,4}\])?'
)
_PORT_GUID = re.compile(r"\s{0,9}\(([0-9a-fA-F]{1,16})\)")
_NAME = re.compile(r'"([^"]{0,200})"')
_RATE = re.compile(r"\blid \d{1,9} (\d{1,2}x[A-Z0-9]{1,6})\b")
_IMAGE = re.compile(r"sysimgguid=(0x[0-9a-fA-F]{1,16})")
_HEADER = re.compile(rb'^(?:Switch|Ca|Rt)\s{1,20}\d{1,4}\s{1,20}"[SHR]-[0-9a-fA-F]', re.MULTILINE)


def recognise(content: bytes, name: str) -> bool:
    """Whether it holds a switch or adapter block."""
    return bool(_HEADER.search(content))


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """The subnet. BadInput where it has no switch. Blocks or lines that a cut took away are found by the other end of the cable and said."""
    seen = _scan(content.decode("utf-8-sig", "replace"))
    boxes = dict(seen.boxes)
    for key, box in sorted(seen.named.items()):
        boxes.setdefault(key, box)
    if not any(box.is_switch for box in boxes.values()):
        first = next((box.description for box in boxes.values()), "none")
        why = "its port is not connected, or the subnet is not up; run ibnetdiscover on a host with an active InfiniBand port"
        raise BadInput(
            f"{name}: line {seen.first_line}: adapters ({first!r} first of {len(boxes)}) and no switch: {why}"
        )
    if not seen.told:
        raise BadInput(
            f"{name}: {len(boxes)} switches or adapters and no cable that can be read; the text may be cut short"
        )
    cables, doubts = _cables(seen)
    facts = fabric_facts(boxes, cables, name, "ibnetdiscover")
    warnings = [*facts.warnings, *doubts]
    hidden = [box for box in boxes.values() if is_aggregation(box.description)]
    if hidden:
        warnings.append(f"{len(hidden)} aggregation units (SHARP) inside switches are no hosts: left out")
    unlinked = sorted(
        box.description
        for key, box in seen.boxes.items()
        if key not in seen.linked and not is_aggregation(box.description)
    )
    if unlinked:
        warnings.append(f"{len(unlinked)} switches or adapters have no cable: {', '.join(unlinked[:10])}")
    return (replace(facts, unknown=(*facts.unknown, *_missing(seen)), warnings=tuple(warnings)),)


@dataclass
class _Seen:
    """What the lines said. `told` has, for each cable (two ends in order), the rate by each end that told of it."""

    boxes: dict[str, Box] = field(default_factory=dict)  # with a block of their own
    named: dict[str, Box] = field(default_factory=dict)  # named by the other end
    told: dict[tuple[tuple[str, str], tuple[str, str]], dict[str, float | None]] = field(default_factory=dict)
    port_guids: dict[tuple[str, str], str] = field(default_factory=dict)
    linked: set[str] = field(default_factory=set)
    broken: list[int] = field(default_factory=list)  # lines that begin as a port and cannot be read
    twice: list[str] = field(default_factory=list)
    first_line: int = 0


def _scan(text: str) -> _Seen:
    seen, block, image = _Seen(), None, None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            if block is not None and not _port(seen, block, stripped):
                seen.broken.append(number)
        elif found := _BOX.match(stripped):
            block = normal_guid(found[3]) or "0" * 16
            seen.first_line = seen.first_line or number
            if block in seen.boxes:
                seen.twice.append(block)
            seen.boxes[block] = Box(found[1] == "Switch", found[4], image)
            image = None
        elif found := _IMAGE.fullmatch(stripped):
            image = normal_guid(found[1])
            block = None
        elif stripped.startswith(("Switch", "Ca\t", "Ca ", "Rt\t", "Rt ")):
            seen.broken.append(number)
            block = None
    return seen


def _port(seen: _Seen, block: str, line: str) -> bool:
    """Take one port line in; False where it is not whole."""
    found = _PORT.match(line)
    rate = _RATE.search(line)
    if found is None or rate is None:
        return False
    rest = line[found.end() :]
    own, other = (block, found[1]), (normal_guid(found[4]) or "0" * 16, found[5])
    other_guid, described = _PORT_GUID.match(rest), _NAME.search(rest)
    for end, guid in ((own, found[2]), (other, other_guid[1] if other_guid else None)):
        if guid and (normal := normal_guid(guid)):
            seen.port_guids[end] = normal
    seen.named.setdefault(other[0], Box(found[3] == "S", described[1] if described else ""))
    seen.linked.update((block, other[0]))
    seen.told.setdefault((min(own, other), max(own, other)), {})[block] = lanes_bytes_per_s(rate[1])
    return True


def _cables(seen: _Seen) -> tuple[list[Cable], list[str]]:
    """Every cable once, and a sentence where its two ends do not tell the same rate."""
    cables, differ = [], 0
    for ends, rates in seen.told.items():
        known = [rate for rate in rates.values() if rate is not None]
        differ += len(set(known)) > 1
        first, second = (End(box, port, seen.port_guids.get((box, port))) for box, port in ends)
        cables.append(Cable((first, second), min(known, default=None)))
    return cables, [f"{differ} cables have another rate at each end: the lower is taken"] if differ else []


def _missing(seen: _Seen) -> list[str]:
    """What a cut or a repetition took from the counts."""
    absent = [
        box.description
        for key, box in seen.named.items()
        if key not in seen.boxes and not is_aggregation(box.description)
    ]
    unknown = []
    if absent:
        unknown.append(
            f"{len(absent)} switches or adapters are named by a neighbour but have no block of their own: the text is cut short, counts are lower bounds"
        )
    one_sided = sum(
        len(rates) < len({box for box, _ in ends if box in seen.boxes}) for ends, rates in seen.told.items()
    )
    if one_sided:
        unknown.append(
            f"{one_sided} cables are told by one end only although the other has a block too: the text may be cut short, counts are lower bounds"
        )
    crossed = sum(count > 1 for count in Counter(end for ends in seen.told for end in ends).values())
    if crossed:
        unknown.append(
            f"{crossed} ports have more than one cable: output of several runs may be mixed, counts are too high"
        )
    if seen.broken:
        unknown.append(
            f"{len(seen.broken)} lines cannot be read, the first is line {seen.broken[0]}: cables may be missing"
        )
    if seen.twice:
        unknown.append(f"{len(seen.twice)} switches or adapters have two blocks: two runs in one file?")
    return unknown
