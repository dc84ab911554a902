"""`ibnetdiscover`: the switches and adapters of an InfiniBand subnet with cables, each told by both ends."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.base import BadInput
from probes.base.facts import FabricFacts, noted
from probes.base.port_rates import lanes_bytes_per_s
from probes.fabric.ib_graph import Box, End, Place, cables_told, fabric_facts
from probes.fabric.naming import is_aggregation, normal_guid

_BOX = re.compile(
    r'(Switch|Ca|Rt)\s{1,20}(\d{1,4})\s{1,20}"[SHR]-([0-9a-fA-F]{1,16})"\s{0,40}#\s{0,9}"([^"]{0,200})"'
)
_PORT = re.compile(
    r"\[(\d{1,4})\](?:\[ext \d{1,4}\])?(?:\(([0-9a-fA-F]{1,16})\))?\s{1,40}"
    r'"([SHR])-([0-9a-fA-F]{1,16})"\[(\d{1,4})\](?:\[ext \d{1,4}\])?'
)
_PORT_GUID = re.compile(r"\s{0,9}\(([0-9a-fA-F]{1,16})\)")
_NAME = re.compile(r'"([^"]{0,200})"')
_RATE = re.compile(r"\blid \d{1,9} (\d{1,2}x[A-Z0-9]{1,6})\b")
_IMAGE = re.compile(r"sysimgguid=(0x[0-9a-fA-F]{1,16})")
_CUT = "the text is cut short, counts are lower bounds"
_MAYBE_CUT = "the text may be cut short, counts are lower bounds"
_HEADER = re.compile(rb'^(?:Switch|Ca|Rt)\s{1,20}\d{1,4}\s{1,20}"[SHR]-[0-9a-fA-F]', re.MULTILINE)


def recognise(content: bytes, name: str) -> bool:
    """Whether it holds a switch or adapter block."""
    return bool(_HEADER.search(content))


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """The subnet. BadInput where it has no switch.

    Blocks or lines that a cut took away are found by the other end of the cable and said.
    """
    seen = _scan(content.decode("utf-8-sig", "replace"))
    boxes = dict(seen.boxes)
    for key, box in sorted(seen.named.items()):
        boxes.setdefault(key, box)
    _refuse_unusable(seen, boxes, name)
    cables, doubts = cables_told(
        {ends: rates.values() for ends, rates in seen.told.items()},
        lambda box, port: End(box, port, seen.port_guids.get((box, port))),
    )
    facts = fabric_facts(boxes, cables, name, "ibnetdiscover")
    return (noted(facts, _missing(seen), (*doubts, *_left_out(seen, boxes))),)


@dataclass
class _Seen:
    """What the lines said. `told` has the rate of each cable (two ends in order) by the end that told it."""

    boxes: dict[str, Box] = field(default_factory=dict)  # with a block of their own
    named: dict[str, Box] = field(default_factory=dict)  # named by the other end
    told: dict[tuple[Place, Place], dict[str, float | None]] = field(default_factory=dict)
    port_guids: dict[Place, str] = field(default_factory=dict)
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


def _refuse_unusable(seen: _Seen, boxes: Mapping[str, Box], name: str) -> None:
    if not any(box.is_switch for box in boxes.values()):
        first = next((box.description for box in boxes.values()), "none")
        raise BadInput(
            f"{name}: line {seen.first_line}: adapters ({first!r} first of {len(boxes)}) and no switch: "
            "its port is not connected, or the subnet is not up; "
            "run ibnetdiscover on a host with an active InfiniBand port"
        )
    if not seen.told:
        found = f"{len(boxes)} switches or adapters and no cable that can be read"
        raise BadInput(f"{name}: {found}; the text may be cut short")


def _left_out(seen: _Seen, boxes: Mapping[str, Box]) -> list[str]:
    warnings = []
    hidden = sum(is_aggregation(box.description) for box in boxes.values())
    if hidden:
        warnings.append(f"{hidden} aggregation units (SHARP) inside switches are no hosts: left out")
    unlinked = sorted(
        box.description
        for key, box in seen.boxes.items()
        if key not in seen.linked and not is_aggregation(box.description)
    )
    if unlinked:
        warnings.append(f"{len(unlinked)} switches or adapters have no cable: {', '.join(unlinked[:10])}")
    return warnings


def _missing(seen: _Seen) -> list[str]:
    """What a cut or a repetition took from the counts."""
    absent = sum(
        key not in seen.boxes and not is_aggregation(box.description) for key, box in seen.named.items()
    )
    one_sided = sum(
        len(rates) < len({box for box, _ in ends if box in seen.boxes}) for ends, rates in seen.told.items()
    )
    crossed = sum(count > 1 for count in Counter(end for ends in seen.told for end in ends).values())
    first = f"the first is line {seen.broken[0]}" if seen.broken else ""
    found = [
        (absent, f"switches or adapters are named by a neighbour but have no block of their own: {_CUT}"),
        (one_sided, f"cables are told by one end only although the other has a block too: {_MAYBE_CUT}"),
        (crossed, "ports have more than one cable: output of several runs may be mixed, counts are too high"),
        (len(seen.broken), f"lines cannot be read, {first}: cables may be missing"),
        (len(seen.twice), "switches or adapters have two blocks: two runs in one file?"),
    ]
    return [f"{count} {what}" for count, what in found if count]
