"""From switches, adapters and cables, as InfiniBand tools list them, to FabricFacts: names, leaves, and which end of a cable is nearer the root."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import UNNAMED, adapter_owner, is_aggregation, natural, switch_name

Pair = tuple[str, str]


@dataclass(frozen=True)
class Box:
    """A switch or an adapter. `description` is the name it gives itself; boxes of one `chassis` (system image GUID) are one machine."""

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


def fabric_facts(boxes: Mapping[str, Box], cables: Sequence[Cable], source: str, kind: str) -> FabricFacts:
    """The fabric, aggregation units inside switches apart. Every end of a cable is a box; a cable between two adapters is left out with a warning."""
    boxes = {key: box for key, box in boxes.items() if not is_aggregation(box.description)}
    cables = [cable for cable in cables if all(end.box in boxes for end in cable.ends)]
    names, chassis = _switch_names(boxes)
    warnings: list[str] = []
    ports = _ports(boxes, names, cables, warnings)
    between = defaultdict(list)
    for cable in cables:
        first, second = (end.box for end in cable.ends)
        if boxes[first].is_switch and boxes[second].is_switch:
            between[min(names[first], names[second]), max(names[first], names[second])].append(
                cable.bytes_per_s
            )
        elif not boxes[first].is_switch and not boxes[second].is_switch:
            warnings.append(
                f"{boxes[first].description} and {boxes[second].description} are cabled to each other without a switch: left out"
            )
    pairs = dict(sorted(between.items()))
    upward = _upward(pairs, Counter(port.leaf for port in ports), warnings)
    rates = {pair: [rate for rate in pairs[key] if rate is not None] for key, pair in upward.items()}
    return FabricFacts(
        source,
        kind,
        "imported",
        ports,
        uplinks={pair: len(pairs[key]) for key, pair in upward.items()},
        uplink_bytes_per_s={
            pair: sum(rates[pair]) for key, pair in upward.items() if len(rates[pair]) == len(pairs[key])
        },
        unknown=_unknown(ports, pairs),
        warnings=tuple(warnings),
        chassis=chassis,
    )


def _switch_names(boxes: Mapping[str, Box]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """A name for every switch (its GUID added where two share one), and the switches of each chassis that holds several."""
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


def _ports(
    boxes: Mapping[str, Box], names: Mapping[str, str], cables: Sequence[Cable], warnings: list[str]
) -> tuple[PortFact, ...]:
    """Cables between an adapter and a switch, by host, NIC and leaf. A name that two adapters share names neither."""
    mine = [
        (a, b, c.bytes_per_s)
        for c in cables
        for a, b in (c.ends, c.ends[::-1])
        if not boxes[a.box].is_switch and boxes[b.box].is_switch
    ]
    owners = {adapter.box: adapter_owner(boxes[adapter.box].description) for adapter, _, _ in mine}
    places = {
        (owners[adapter.box], adapter.port, adapter.box) for adapter, _, _ in mine
    }  # a card's two ports may be two boxes of one name
    bearers = Counter((owner, port) for owner, port, _ in places)
    shared = sorted(
        {
            host
            for ((host, nic), _), count in bearers.items()
            if count > 1 and host is not None and nic is not None
        }
    )
    if shared:
        warnings.append(
            f"several adapters have the same host and device name, so these hosts are told apart by GUID only: {', '.join(shared[:20])}"
        )
    dual = {owner for owner, port, _ in places if port != "1"}
    ports = []
    for adapter, switch, rate in mine:
        host, nic = owners[adapter.box]
        if nic is not None and (host, nic) in dual and host is not None:
            nic = f"{nic}:{adapter.port}"
        if host is None or host in shared:
            host = UNNAMED + adapter.box
        ports.append(PortFact(host, nic, names[switch.box], rate, adapter.guid))
    return tuple(
        sorted(
            ports, key=lambda port: (natural(port.host), natural(port.nic or ""), port.leaf, port.guid or "")
        )
    )


def _upward(
    pairs: Mapping[Pair, Sequence[object]], hosts: Mapping[str, int], warnings: list[str]
) -> dict[Pair, Pair]:
    """Each pair of cabled switches as (nearer the hosts, nearer the root)."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for first, second in pairs:
        neighbours[first].add(second)
        neighbours[second].add(first)
    leaves = set(hosts)
    for switch in sorted(leaves, key=lambda name: (hosts[name], name)):
        # A subnet manager on a spine does not make it a leaf: every switch it is cabled to has many more hosts.
        beside = [hosts[other] for other in neighbours[switch] if other in leaves]
        if beside and 4 * hosts[switch] <= min(beside):
            leaves.remove(switch)
            warnings.append(
                f"{switch} is taken for a spine: it has {hosts[switch]} host ports where the leaves below it have {min(beside)} and more"
            )
    tier = dict.fromkeys(leaves, 0)
    reached = sorted(leaves)
    for switch in reached:  # grows as it goes: breadth first
        for other in sorted(neighbours[switch]):
            if other not in tier:
                tier[other] = tier[switch] + 1
                reached.append(other)
    level = [pair for pair in pairs if tier.get(pair[0]) == tier.get(pair[1])]
    if level:
        warnings.append(
            f"{len(level)} pairs of switches are cabled on the same tier ({', '.join(level[0])}): which is nearer the root is not told"
        )
    return {
        (first, second): (first, second) if tier.get(first, 0) <= tier.get(second, 0) else (second, first)
        for first, second in pairs
    }


def _unknown(ports: Sequence[PortFact], pairs: Mapping[Pair, Sequence[float | None]]) -> tuple[str, ...]:
    unnamed = [port for port in ports if port.host.startswith(UNNAMED)]
    unknown = []
    if unnamed:
        unknown.append(
            f"{len(unnamed)} adapters name no host and stand alone as '{UNNAMED}...': import the ibstat or sysfs of their hosts too, which name the GUIDs"
        )
    slow = sum(port.rate_bytes_per_s is None for port in ports) + sum(
        rate is None for rates in pairs.values() for rate in rates
    )
    if slow:
        unknown.append(f"{slow} cables have a rate that cannot be read")
    return tuple(unknown)
