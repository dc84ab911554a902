"""GPUs as a person names them: by rank, in ranges, or by the node that they are on."""

import re

from planner.base import BadInput
from planner.topology.topology import Topology

_RANKS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_NODE = re.compile(r"node([0-9]{1,6})")
SHOWN = 4


def ranks_named(topology: Topology, text: str, where: str) -> tuple[int, ...]:
    """The ranks in '3', '0-3,9' or 'node1,host-b', rising. A node goes by its name, or by its number from 0.

    BadInput names the word that is neither, and what there is.
    """
    named = {node.name: number for number, node in enumerate(topology.nodes) if node.name}
    found: set[int] = set()
    for word in (part.strip() for part in text.split(",")):
        found |= _ranks(topology, named, word, f"{where} {text!r}")
    return tuple(sorted(found))


def _ranks(topology: Topology, named: dict[str, int], word: str, where: str) -> set[int]:
    number = named.get(word)
    by_number = _NODE.fullmatch(word)
    if number is None and by_number and int(by_number[1]) < topology.node_count:
        number = int(by_number[1])
    if number is not None:
        return {gpu.rank for gpu in topology.gpus if gpu.node == number}
    ranks = _RANKS.fullmatch(word)
    if ranks:
        first, last = int(ranks[1]), int(ranks[2] or ranks[1])
        if first <= last < topology.gpu_count:
            return set(range(first, last + 1))
    nodes = [node.name or f"node{number}" for number, node in enumerate(topology.nodes)]
    shown = ", ".join(nodes[:SHOWN]) + (", ..." if len(nodes) > SHOWN else "")
    raise BadInput(
        f"{where}: {word!r} is no GPU or node of {topology.name}: its GPUs are 0 to "
        f"{topology.gpu_count - 1}, its nodes {shown}; write it like 3 or 0-3 or {nodes[-1]}"
    )
