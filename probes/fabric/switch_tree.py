"""From a tree of switches with hosts below, as schedulers and clouds describe a cluster, to FabricFacts: distance is told, bandwidth never."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from planner.base import BadInput
from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import natural

NO_RATES = "it tells which hosts are near, not how fast: give the NIC rate and the oversubscription"


def tree_facts(
    children: Mapping[str, Sequence[str]],
    hosts: Mapping[str, Sequence[str]],
    blocks: Mapping[str, Sequence[str]],
    source: str,
    kind: str,
) -> FabricFacts:
    """The tree: the switches below each switch, the hosts on each leaf, the hosts of each block. BadInput where switches are below each other in a circle."""
    _refuse_circles(children, source)
    parents: dict[str, list[str]] = defaultdict(list)
    for parent, below in children.items():
        for child in below:
            parents[child].append(parent)
    defined = set(children) | set(hosts)
    warnings, unknown = (
        [],
        [NO_RATES if any(hosts.values()) else "which hosts share a leaf switch is not told"],
    )
    undefined = sorted(set(parents) - defined, key=natural)
    if undefined:
        named = ", ".join(undefined[:10])
        unknown.append(
            f"{len(undefined)} switches are named below another and not described ({named}): the file may be cut short, and hosts missing"
        )
    several = [child for child, above in parents.items() if len(above) > 1]
    if several:
        warnings.append(
            f"{len(several)} switches are below several others ({several[0]} below {' and '.join(parents[several[0]][:3])})"
        )
    twice = [
        host for host, count in Counter(host for leaf in hosts.values() for host in leaf).items() if count > 1
    ]
    if twice:
        warnings.append(f"{len(twice)} hosts are on several leaves: {', '.join(twice[:10])}")
    roots = [switch for switch in sorted(defined, key=natural) if switch not in parents]
    if len(roots) > 1:
        warnings.append(
            f"{len(roots)} switches have none above them ({', '.join(roots[:10])}): what joins them, if anything, is not told"
        )
    empty = sorted(name for name in defined if not children.get(name) and not hosts.get(name))
    if empty:
        warnings.append(f"{len(empty)} switches have nothing below them: {', '.join(empty[:10])}")
    ports = [PortFact(host, None, leaf) for leaf, below in hosts.items() for host in below]
    if blocks and kind.startswith("slurm"):
        unknown.append("whether a block is one NVLink domain is not told")
    return FabricFacts(
        source,
        kind,
        "imported",
        tuple(sorted(ports, key=lambda port: (natural(port.host), natural(port.leaf)))),
        uplinks={(child, parent): 0 for child in sorted(parents, key=natural) for parent in parents[child]},
        blocks={name: tuple(below) for name, below in blocks.items()},
        unknown=tuple(unknown),
        warnings=tuple(warnings),
    )


def _refuse_circles(children: Mapping[str, Sequence[str]], source: str) -> None:
    """Walks down from every switch without recursion: a circle of ten thousand must not end our stack."""
    done: set[str] = set()
    for start in children:
        path: dict[str, None] = {}
        stack = [(start, False)]
        while stack:
            switch, leaving = stack.pop()
            if leaving:
                del path[switch]
                done.add(switch)
            elif switch in path:
                raise BadInput(
                    f"{source}: the switch {switch} is below itself ({' > '.join([*path, switch][-5:])}); correct the file"
                )
            elif switch not in done:
                path[switch] = None
                stack += [(switch, True), *((child, False) for child in children.get(switch, ()))]
