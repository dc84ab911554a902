"""From each host's chain of switches, closest first, as clouds and topograph give it, to FabricFacts."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.fabric.switch_tree import Tree, tree_facts

Chains = Mapping[str, Sequence[str]]  # host -> switches, closest first


def chain_facts(chains: Chains, domains: Mapping[str, str], source: str, kind: str) -> FabricFacts:
    """The tree that the chains make. A host with an empty chain is named as unknown.

    A switch name used below different switches is told apart by its path.
    """
    ambiguous = _ambiguous(chains)
    silent = [host for host, chain in chains.items() if not chain]
    blocks: dict[str, list[str]] = defaultdict(list)
    for host, domain in domains.items():
        blocks[domain].append(host)
    if len(silent) == len(chains) and not blocks:
        raise BadInput(
            f"{source}: none of the {len(chains)} hosts has a network label; "
            "labels come from the cloud or from topograph: check they are written"
        )
    facts = tree_facts(_tree(chains, ambiguous, blocks), source, kind)
    unknown, warnings = [], []
    if silent:
        named = ", ".join(silent[:10])
        unknown.append(f"{len(silent)} hosts have no network label: {named}; where they hang is not told")
    depths = sorted({len(chain) for chain in chains.values() if chain})
    if len(depths) > 1:
        numbers = " or ".join(map(str, depths))
        warnings.append(f"hosts have {numbers} network layers: levels are counted from the host")
    if ambiguous:
        warnings.append(
            f"{len(ambiguous)} switch names are used in several places and told apart by path: "
            f"{', '.join(sorted(ambiguous)[:5])}"
        )
    return replace(facts, unknown=(*unknown, *facts.unknown), warnings=(*warnings, *facts.warnings))


def _ambiguous(chains: Chains) -> set[str]:
    """Names of switches that are used on two levels, or on one below different switches."""
    above: dict[str, set[tuple[int, tuple[str, ...]]]] = defaultdict(set)
    for chain in chains.values():
        for level, switch in enumerate(chain):
            above[switch].add((level, tuple(chain[level + 1 :])))
    return {switch for switch, places in above.items() if len(places) > 1}


def _tree(chains: Chains, ambiguous: set[str], blocks: Mapping[str, Sequence[str]]) -> Tree:
    children: dict[str, dict[str, None]] = defaultdict(dict)
    hosts: dict[str, list[str]] = defaultdict(list)
    for host, chain in chains.items():
        names = [
            "/".join(reversed(chain[level:])) if switch in ambiguous else switch
            for level, switch in enumerate(chain)
        ]
        if names:
            hosts[names[0]].append(host)
        for child, parent in itertools.pairwise(names):
            children[parent][child] = None
    return Tree({parent: list(below) for parent, below in children.items()}, hosts, blocks)
