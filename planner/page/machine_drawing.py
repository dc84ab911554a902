"""A machine as a drawing: its nodes with their GPUs and links, and the fabric, coloured by how busy each is.

GPUs are coloured by their load over the fair share, links by their seconds over those of the busiest link.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from planner.page.charts import drawing, label_at
from planner.page.html import Html, markup, tag
from planner.page.tables import levels_of_even, levels_of_share
from planner.topology import Resource, Topology

ACROSS, CELL, GAP = 8, 39, 14  # GPUs side by side, columns of one, between nodes
ROW, HEAD = 26, 24  # lines of a row of a node, and of its name
MOST_NODES = 12  # drawn one by one
FABRIC = ("leaf", "spine")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Busy:
    """How busy GPUs and links are, and what is said of each."""

    over_G: Floats  # load over the fair share
    share_R: Floats  # seconds over those of the busiest link
    said_R: Sequence[str]


@dataclass(frozen=True)
class _Node:
    number: int
    first: int  # rank of its first GPU
    gpus: int
    links: tuple[tuple[str, tuple[int, ...]], ...]  # resources by tier


def draw_machine(topology: Topology, busy: Busy) -> Html:
    """Nodes side by side, then the switches above them. Of many nodes those with the busiest links."""
    nodes = list(_nodes(topology))
    drawn, left_out = _busiest(nodes, busy)
    across = 2 if len(drawn) > 1 else 1
    wide = max(gpus_across(topology), 3) * CELL + 74
    parts: list[Html] = []
    y = 0
    for start in range(0, len(drawn), across):
        line = drawn[start : start + across]
        parts += [_draw_node(node, at * (wide + GAP), y, wide, busy) for at, node in enumerate(line)]
        y += max(_height(node, busy) for node in line) + GAP
    total = across * wide + (across - 1) * GAP
    if left_out:
        most = max(_share(node, busy) for node in left_out)
        told = f"and {len(left_out)} more nodes, none with a link busier than {most:.0%} of the busiest"
        parts.append(label_at(0, y + 12, told))
        y += 26
    fabric, height = _draw_fabric(topology, y, total, busy)
    label = (
        f"{topology.name}: {topology.node_count} nodes, {topology.gpu_count} GPUs, with the load of each link"
    )
    return drawing(total, y + height, label, [*parts, fabric])


def gpus_across(topology: Topology) -> int:
    """GPUs side by side in a node, of the node that has most."""
    return min(max(len(node.gpus) for node in topology.nodes), ACROSS)


def _nodes(topology: Topology) -> Iterator[_Node]:
    """Each node with what leaves it and what enters it, by tier; both directions of a link are one chip."""
    of_node: dict[str, list[tuple[str, int]]] = {}
    for index, one in enumerate(topology.resources):
        of_node.setdefault(one.name.partition("/")[0], []).append((one.tier, index))
    starts = np.flatnonzero(np.diff(topology.node_G, prepend=-1)).tolist()
    for number, first in enumerate(starts):
        found = [one for one in of_node.get(f"node{number}", []) if one[0] not in FABRIC]
        tiers = dict.fromkeys(tier for tier, _ in found)
        links = tuple((tier, tuple(index for of, index in found if of == tier)) for tier in tiers)
        yield _Node(number, first, len(topology.nodes[number].gpus), links)


def _busiest(nodes: list[_Node], busy: Busy) -> tuple[list[_Node], list[_Node]]:
    """Those that are drawn, in their order, and the others."""
    if len(nodes) <= MOST_NODES:
        return nodes, []
    ranked = sorted(nodes, key=lambda node: (-round(_share(node, busy), 9), node.number))
    chosen = {node.number for node in ranked[: MOST_NODES - 2]}
    return [one for one in nodes if one.number in chosen], [one for one in nodes if one.number not in chosen]


def _share(node: _Node, busy: Busy) -> float:
    return max((float(busy.share_R[index]) for _, links in node.links for index in links), default=0.0)


def _rows(node: _Node, busy: Busy) -> int:
    gpus = -(-node.gpus // ACROSS)
    return gpus + sum(1 if _idle(links, busy) else -(-_chips(links) // ACROSS) for _, links in node.links)


def _idle(links: tuple[int, ...], busy: Busy) -> bool:
    return not any(busy.share_R[index] > 0 for index in links)


def _chips(links: tuple[int, ...]) -> int:
    return -(-len(links) // 2)


def _height(node: _Node, busy: Busy) -> int:
    return HEAD + _rows(node, busy) * ROW + 6


def _draw_node(node: _Node, x: int, y: int, wide: int, busy: Busy) -> Html:
    parts = [
        tag(
            "rect", x=x + 0.5, y=y + 0.5, width=wide - 1, height=_height(node, busy) - 1, rx=5, class_="frame"
        ),
        label_at(x + 8, y + 16, f"node {node.number}"),
    ]
    top = y + HEAD
    for gpu in range(node.gpus):
        rank, at = node.first + gpu, x + 62 + gpu % ACROSS * CELL
        level = int(levels_of_even(busy.over_G[rank : rank + 1])[0])
        said = f"GPU {rank}: {busy.over_G[rank]:.3f} of its fair share of the load"
        parts.append(_chip(at, top + gpu // ACROSS * ROW, f"d{level}", said, str(rank)))
    parts.append(label_at(x + 8, top + 15, "GPU", class_="dim"))
    top += -(-node.gpus // ACROSS) * ROW
    for tier, links in node.links:
        parts.append(label_at(x + 8, top + 15, tier, class_="dim"))
        if _idle(links, busy):
            parts.append(label_at(x + 62, top + 15, "nothing sent", class_="dim"))
            top += ROW
            continue
        for chip, (out, into) in enumerate(_both(links)):
            at = x + 62 + chip % ACROSS * CELL
            parts.append(_link(at, top + chip // ACROSS * ROW, CELL - 4, (out, into), busy))
        top += -(-_chips(links) // ACROSS) * ROW
    return tag("g", parts)


def _both(links: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Directions come in pairs: out and in, up and down."""
    for at in range(0, len(links), 2):
        yield links[at], links[min(at + 1, len(links) - 1)]


def _link(x: int, y: int, wide: int, ends: tuple[int, int], busy: Busy) -> Html:
    """The busier direction gives the colour and the figure; both are said."""
    share = max(float(busy.share_R[end]) for end in ends)
    level = int(levels_of_share(1.0)(np.array([share]))[0])
    said = "; ".join(dict.fromkeys(busy.said_R[end] for end in ends))
    return _chip(x, y, f"s{level}", said, f"{share:.0%}", wide)


def _chip(x: int, y: int, level: str, said: str, text: str, wide: int = CELL - 4) -> Html:
    inside = [
        tag("rect", x=x, y=y, width=wide, height=ROW - 5, rx=3, class_=f"{level} edge"),
        label_at(x + wide / 2, y + 15, text, anchor="middle"),
    ]
    return tag("g", tag("title", said), inside, data_says=said, role="img", aria_label=said)


def _draw_fabric(topology: Topology, y: int, wide: int, busy: Busy) -> tuple[Html, int]:
    """Uplinks of leaves and spines, the busiest of each tier; and the height that they take."""
    switches: list[tuple[int, Resource]] = [
        (index, one) for index, one in enumerate(topology.resources) if one.tier in FABRIC
    ]
    parts, top, chip = [], y, 96
    most = max((wide - 62) // (chip + 6), 1)
    for tier, group in groupby(switches, key=lambda one: one[1].tier):
        pairs = list(_both(tuple(index for index, _ in group)))
        ranked = sorted(pairs, key=lambda ends: (-round(max(busy.share_R[end] for end in ends), 9), ends))
        parts.append(label_at(0, top + 15, tier, class_="dim"))
        for number, ends in enumerate(ranked[:most]):
            x = 62 + number * (chip + 6)
            parts.append(_link(x, top, chip, ends, busy))
            name = topology.resources[ends[0]].name.rpartition("/")[0]
            parts.append(label_at(x, top + 33, name[:16], class_="dim"))
        if len(ranked) > most:
            parts.append(label_at(62, top + 50, f"and {len(ranked) - most} more, none busier", class_="dim"))
            top += 17
        top += 42
    return markup(parts), top - y + 2
