"""From each host's chain of switches, closest first, to FabricFacts: what clouds and topograph write on every node."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.fabric.switch_tree import tree_facts


def chain_facts(
    chains: Mapping[str, Sequence[str]], domains: Mapping[str, str], source: str, kind: str
) -> FabricFacts:
    """The tree that the chains make. A host with an empty chain is named as unknown; a switch name used below different switches is told apart by its path."""
    above: dict[tuple[int, str], set[tuple[str, ...]]] = defaultdict(
        set
    )  # where a name is used: what is above it
    for chain in chains.values():
        for level, switch in enumerate(chain):
            above[level, switch].add(tuple(chain[level + 1 :]))
    ambiguous = {switch for (_, switch), uses in above.items() if len(uses) > 1} | _on_two_levels(above)
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
    blocks: dict[str, list[str]] = defaultdict(list)
    for host, domain in domains.items():
        blocks[domain].append(host)
    silent = [host for host, chain in chains.items() if not chain]
    if len(silent) == len(chains) and not blocks:
        raise BadInput(
            f"{source}: none of the {len(chains)} hosts has a network label; labels come from the cloud or from topograph: check they are written"
        )
    facts = tree_facts(
        {parent: list(below) for parent, below in children.items()}, hosts, blocks, source, kind
    )
    unknown = (
        [f"{len(silent)} hosts have no network label: {', '.join(silent[:10])}; where they hang is not told"]
        if silent
        else []
    )
    depths = sorted({len(chain) for chain in chains.values() if chain})
    warnings = (
        [f"hosts have {' or '.join(map(str, depths))} network layers: levels are counted from the host"]
        if len(depths) > 1
        else []
    )
    if ambiguous:
        warnings.append(
            f"{len(ambiguous)} switch names are used in several places and told apart by path: {', '.join(sorted(ambiguous)[:5])}"
        )
    return replace(facts, unknown=(*unknown, *facts.unknown), warnings=(*warnings, *facts.warnings))


def _on_two_levels(above: Mapping[tuple[int, str], object]) -> set[str]:
    levels: dict[str, set[int]] = defaultdict(set)
    for level, switch in above:
        levels[switch].add(level)
    return {switch for switch, found in levels.items() if len(found) > 1}
