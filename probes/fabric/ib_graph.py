"""From switches, adapters and cables, as InfiniBand tools list them, to FabricFacts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import UNNAMED, adapter_owner, is_aggregation, natural, port_order, switch_name
from probes.fabric.upward import Pair, upward


@dataclass(frozen=True)
class Box:
    """A switch or an adapter. `description` is the name it gives itself.

    Boxes of one `chassis` (system image GUID) are one machine.
    """

    is_switch: bool
    description: str
    chassis: str | None = None


@dataclass(frozen=True)
class End:
    """One end of a cable: a box and a port of it, and the port's GUID where it is told."""

    box: str
    port: str
    guid: str | None = None


@dataclass(frozen=True)
class Cable:
    ends: tuple[End, End]
    bytes_per_s: float | None


Place = tuple[str, str]  # a box as the source writes it, and a port of it
Rates = Mapping[tuple[Place, Place], Collection[float | None]]  # of each cable, by the ends that tell of it


def cables_told(rates: Rates, end: Callable[[str, str], End]) -> tuple[list[Cable], tuple[str, ...]]:
    """Every cable once, and a sentence where its two ends do not tell the same rate."""
    cables, differ = [], 0
    for (first, second), told in rates.items():
        known = [rate for rate in told if rate is not None]
        differ += len(set(known)) > 1
        cables.append(Cable((end(*first), end(*second)), min(known, default=None)))
    doubt = f"{differ} cables have another rate at each end: the lower is taken"
    return cables, (doubt,) if differ else ()


def fabric_facts(boxes: Mapping[str, Box], cables: Sequence[Cable], source: str, kind: str) -> FabricFacts:
    """The fabric, aggregation units inside switches apart. Every end of a cable is a box.

    A cable between two adapters is left out with a warning.
    """
    boxes = {key: box for key, box in boxes.items() if not is_aggregation(box.description)}
    cables = [cable for cable in cables if all(end.box in boxes for end in cable.ends)]
    names, chassis = _switch_names(boxes)
    warnings: list[str] = []
    ports = _ports(boxes, names, cables, warnings)
    between = _between_switches(boxes, names, cables, warnings)
    up = upward(between, Counter(port.leaf for port in ports), warnings)
    known = {key: [rate for rate in rates if rate is not None] for key, rates in between.items()}
    whole = [key for key, rates in between.items() if len(known[key]) == len(rates)]
    return FabricFacts(
        source,
        kind,
        "imported",
        ports,
        uplinks={pair: len(between[key]) for key, pair in up.items()},
        uplink_bytes_per_s={up[key]: sum(known[key]) for key in whole},
        unknown=_unknown(ports, between),
        warnings=tuple(warnings),
        chassis=chassis,
    )


def _switch_names(boxes: Mapping[str, Box]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """A name for every switch (with its GUID where two share one), and the switches of larger chassis."""
    switches = {key: box for key, box in boxes.items() if box.is_switch}
    holds = Counter(box.chassis for box in switches.values() if box.chassis)
    names = {}
    for key, box in switches.items():
        host, unit = switch_name(box.description)
        names[key] = f"{host}/{unit}" if host and unit else host or key
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    names = {key: f"{name} ({key})" if name in shared else name for key, name in names.items()}
    chassis: dict[str, list[str]] = defaultdict(list)
    for key, box in switches.items():
        if box.chassis and holds[box.chassis] > 1:
            chassis[switch_name(box.description)[0] or box.chassis].append(names[key])
    return names, {name: tuple(sorted(inside, key=natural)) for name, inside in sorted(chassis.items())}


def _between_switches(
    boxes: Mapping[str, Box], names: Mapping[str, str], cables: Sequence[Cable], warnings: list[str]
) -> dict[Pair, list[float | None]]:
    """Rates of the cables of each pair of switches, both in order."""
    between: dict[Pair, list[float | None]] = defaultdict(list)
    for cable in cables:
        keys = [end.box for end in cable.ends]
        first, second = (boxes[key] for key in keys)
        if first.is_switch and second.is_switch:
            low, high = sorted(names[key] for key in keys)
            between[low, high].append(cable.bytes_per_s)
        elif not first.is_switch and not second.is_switch:
            both = f"{first.description} and {second.description}"
            warnings.append(f"{both} are cabled to each other without a switch: left out")
    return dict(sorted(between.items()))


def _ports(
    boxes: Mapping[str, Box], names: Mapping[str, str], cables: Sequence[Cable], warnings: list[str]
) -> tuple[PortFact, ...]:
    """Cables between an adapter and a switch. A name that two adapters share names neither."""
    mine = [
        (adapter, switch, cable.bytes_per_s)
        for cable in cables
        for adapter, switch in (cable.ends, cable.ends[::-1])
        if not boxes[adapter.box].is_switch and boxes[switch.box].is_switch
    ]
    owners = {adapter.box: adapter_owner(boxes[adapter.box].description) for adapter, _, _ in mine}
    # a card's two ports may be two boxes of one name
    places = {(owners[adapter.box], adapter.port, adapter.box) for adapter, _, _ in mine}
    bearers = Counter((owner, port) for owner, port, _ in places)
    shared = {host for ((host, nic), _), count in bearers.items() if count > 1 and host and nic}
    if shared:
        warnings.append(
            "several adapters have the same host and device name, "
            f"so these hosts are told apart by GUID only: {', '.join(sorted(shared)[:20])}"
        )
    dual = {owner for owner, port, _ in places if port != "1"}
    ports = []
    for adapter, switch, rate in mine:
        host, nic = owner = owners[adapter.box]
        if nic is not None and host is not None and owner in dual:
            nic = f"{nic}:{adapter.port}"
        if host is None or host in shared:
            host = UNNAMED + adapter.box
        ports.append(PortFact(host, nic, names[switch.box], rate, adapter.guid))
    return tuple(sorted(ports, key=port_order))


def _unknown(ports: Sequence[PortFact], between: Mapping[Pair, Sequence[float | None]]) -> tuple[str, ...]:
    unnamed = [port for port in ports if port.host.startswith(UNNAMED)]
    unknown = []
    if unnamed:
        unknown.append(
            f"{len(unnamed)} adapters name no host and stand alone as '{UNNAMED}...': "
            "import the ibstat or sysfs of their hosts too, which name the GUIDs"
        )
    rates = [port.rate_bytes_per_s for port in ports]
    rates += [rate for cables in between.values() for rate in cables]
    slow = rates.count(None)
    if slow:
        unknown.append(f"{slow} cables have a rate that cannot be read")
    return tuple(unknown)
