"""From a tree of switches with hosts below, as schedulers and clouds tell it, to FabricFacts."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.base import BadInput
from probes.base.facts import FabricFacts, PortFact
from probes.fabric.naming import natural


@dataclass(frozen=True)
class Tree:
    """The switches below each switch, the hosts on each leaf, the hosts of each block."""

    children: Mapping[str, Sequence[str]]
    hosts: Mapping[str, Sequence[str]]
    blocks: Mapping[str, Sequence[str]]

    def parents(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for parent, below in self.children.items():
            for child in below:
                found[child].append(parent)
        return found

    def described(self) -> set[str]:
        """Switches with a line of their own."""
        return set(self.children) | set(self.hosts)


def tree_facts(tree: Tree, source: str, kind: str) -> FabricFacts:
    """The tree as facts. BadInput where switches are below each other in a circle."""
    _refuse_circles(tree.children, source)
    parents = tree.parents()
    ports = [PortFact(host, None, leaf) for leaf, below in tree.hosts.items() for host in below]
    return FabricFacts(
        source,
        kind,
        "imported",
        tuple(sorted(ports, key=lambda port: (natural(port.host), natural(port.leaf)))),
        uplinks={(child, parent): 0 for child in sorted(parents, key=natural) for parent in parents[child]},
        blocks={name: tuple(below) for name, below in tree.blocks.items()},
        unknown=_unknown(tree, kind),
        warnings=_warnings(tree, parents),
    )


def _unknown(tree: Tree, kind: str) -> tuple[str, ...]:
    unknown = [] if any(tree.hosts.values()) else ["which hosts share a leaf switch is not told"]
    undefined = sorted(set(tree.parents()) - tree.described(), key=natural)
    if undefined:
        named = ", ".join(undefined[:10])
        unknown.append(
            f"{len(undefined)} switches are named below another and not described ({named}): "
            "the file may be cut short, and hosts missing"
        )
    if tree.blocks and kind.startswith("slurm"):
        unknown.append("whether a block is one NVLink domain is not told")
    return tuple(unknown)


def _warnings(tree: Tree, parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    warnings = []
    several = [child for child, above in parents.items() if len(above) > 1]
    if several:
        example = f"{several[0]} below {' and '.join(parents[several[0]][:3])}"
        warnings.append(f"{len(several)} switches are below several others ({example})")
    leaves_with = Counter(host for leaf in tree.hosts.values() for host in leaf)
    twice = [host for host, leaves in leaves_with.items() if leaves > 1]
    if twice:
        warnings.append(f"{len(twice)} hosts are on several leaves: {', '.join(twice[:10])}")
    roots = [switch for switch in sorted(tree.described(), key=natural) if switch not in parents]
    if len(roots) > 1:
        named = ", ".join(roots[:10])
        warnings.append(
            f"{len(roots)} switches have none above them ({named}): what joins them, if anything, is not told"
        )
    empty = sorted(
        name for name in tree.described() if not tree.children.get(name) and not tree.hosts.get(name)
    )
    if empty:
        warnings.append(f"{len(empty)} switches have nothing below them: {', '.join(empty[:10])}")
    return tuple(warnings)


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
                circle = " > ".join([*path, switch][-5:])
                raise BadInput(f"{source}: the switch {switch} is below itself ({circle}); correct the file")
            elif switch not in done:
                path[switch] = None
                stack += [(switch, True), *((child, False) for child in children.get(switch, ()))]
