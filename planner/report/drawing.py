"""A machine drawn in plain text, at most 100 columns wide: each kind of node once, then the fabric."""

import textwrap
from collections.abc import Hashable, Iterator
from itertools import groupby

from planner.base import human_bandwidth, human_bytes
from planner.topology import Fabric, Node, Pcie, Resource, Topology, alike

WIDTH = 100
_LABEL, _CELL, _ACROSS = 12, 11, 8  # columns of a row's label and of one GPU; GPUs side by side
_LEAVES = 6  # drawn before "and so many more"

Cell = tuple[Hashable, str]  # neighbours with the same key are drawn as one span; the text in it
Row = tuple[str, list[Cell]]


def draw(topology: Topology) -> str:
    linked = topology.domain_count < topology.gpu_count
    domains = _many(topology.domain_count, "NVLink domain") if linked else "no NVLink"
    sizes = f"{_many(topology.node_count, 'node')}, {_many(topology.gpu_count, 'GPU')}"
    lines = [*_wrapped(f"{topology.name}: {sizes}, {domains}"), *_wrapped(f"source: {topology.source}")]
    first = 0
    for node, group in alike(topology.nodes):
        last = first + len(group) - 1
        names = f"node{first}" if last == first else f"node{first} to node{last}, {len(group)} alike"
        lines += ["", *_wrapped(f"{names}: {_gpu_words(node)}"), *_draw_node(node)]
        first = last + 1
    lines += ["", *_draw_fabric(topology)]
    return "\n".join(line.rstrip() for line in lines)


def _draw_node(node: Node) -> Iterator[str]:
    rows = [row for row in _rows(node) if any(text for _, text in row[1])]
    for start in range(0, len(node.gpus), _ACROSS):
        for label, cells in rows:
            yield f"{label:<{_LABEL}}" + "".join(_spans(cells[start : start + _ACROSS]))
        if start + _ACROSS < len(node.gpus):
            yield ""
    for rate, links in groupby(node.nvlink.pairs, key=lambda link: link.rate.bytes_per_s):
        pairs = " ".join(f"{link.gpus[0]}-{link.gpus[1]}" for link in links)
        yield from _wrapped(f"{'NVLink':<{_LABEL}}{human_bandwidth(rate)} between GPUs {pairs}", " " * _LABEL)
    unknown = _unknown(node)
    if unknown:
        text = f"{'not known':<{_LABEL}}{unknown}; costs nothing in a plan"
        yield from _wrapped(text, " " * _LABEL)


def _rows(node: Node) -> list[Row]:
    """Top to bottom, as a message would travel out of the node."""
    none: list[Cell] = [(("none", gpu), "") for gpu in range(len(node.gpus))]
    names: list[Cell] = [(gpu, f"gpu{gpu}") for gpu in range(len(node.gpus))]
    models: list[Cell] = [(model.name, model.name) for model in node.gpus]
    return [
        *_nvlink_rows(node, none),
        ("", names),
        ("", models if len(set(node.gpus)) > 1 else none),
        *(_host_rows(node.pcie, none) if node.pcie else []),
        *_nic_rows(node, none),
    ]


def _nvlink_rows(node: Node, none: list[Cell]) -> list[Row]:
    nvlink, port = list(none), list(none)
    for number, island in enumerate(node.nvlink.islands):
        for gpu, rate in zip(island.gpus, island.rates, strict=True):
            nvlink[gpu] = number, "NVLink switch"
            port[gpu] = (number, rate.bytes_per_s), f"{human_bandwidth(rate.bytes_per_s)} a GPU"
    return [("", nvlink), ("", port)]


def _nic_rows(node: Node, none: list[Cell]) -> list[Row]:
    nics, nic_rate, rail = (list(none) for _ in range(3))
    for pool in node.nic_pools:
        first, total = node.nics[pool[0]], sum(node.nics[nic].rate.bytes_per_s for nic in pool)
        for gpu in first.gpus:
            nics[gpu] = pool, f"nic{pool[0]}" + (f"..{pool[-1]}" if len(pool) > 1 else "")
            nic_rate[gpu], rail[gpu] = (pool, human_bandwidth(total)), (pool, f"rail {first.rail}")
    return [("NIC", nics), ("each way", nic_rate), ("", rail)]


def _host_rows(pcie: Pcie, none: list[Cell]) -> list[Row]:
    links: list[Cell] = [(rate.bytes_per_s, human_bandwidth(rate.bytes_per_s)) for rate in pcie.rates]
    sockets: list[Cell] = [(socket, f"socket {socket}") for socket in pcie.sockets]
    switches, uplinks = list(none), list(none)
    for number, switch in enumerate(pcie.switches):
        for gpu in switch.gpus:
            switches[gpu] = number, f"switch {number}"
            uplinks[gpu] = number, human_bandwidth(switch.uplink.bytes_per_s)
    between = pcie.inter_socket
    label = f"<-{human_bandwidth(between.bytes_per_s)}->" if between and len(set(pcie.sockets)) > 1 else ""
    return [("PCIe", links), ("", switches), ("uplink", uplinks), (label, sockets)]


def _spans(cells: list[Cell]) -> Iterator[str]:
    for _, members in groupby(cells, key=lambda cell: cell[0]):
        texts = [text for _, text in members]
        width = _CELL * len(texts) - 1
        if len(texts) == 1 or not texts[0]:
            yield texts[0][:width].center(width) + " "
        else:
            yield f"[{(' ' + texts[0] + ' ')[: width - 2].center(width - 2, '-')}] "


def _draw_fabric(topology: Topology) -> Iterator[str]:
    fabric = topology.fabric
    if fabric.nvlink_domain_nodes > 1:
        nodes = f"{fabric.nvlink_domain_nodes} consecutive nodes"
        yield f"NVLink: {nodes} share one NVLink domain; the NICs carry what leaves it"
    if topology.node_count == 1:
        yield "network: none in use, one node"
        return
    evidence = f"{fabric.evidence.kind}: {fabric.evidence.source}"
    yield from _wrapped(f"network: {_fabric_words(fabric)} ({evidence})")
    switches = (one for one in topology.resources if one.tier in ("leaf", "spine"))
    above = sorted((one for one in switches if one.name.endswith("/up")), key=lambda one: one.head)
    for head, group in groupby(above, key=lambda one: one.head):
        yield f"  {head}"
        yield from _branches(list(group))


def _fabric_words(fabric: Fabric) -> str:
    if fabric.kind == "none":
        kind = "one flat network, no bottleneck beyond the NICs"
    else:
        nodes = f"{fabric.nodes_per_leaf} nodes"
        kind = {
            "leaf-spine": f"leaf-spine, {nodes} a leaf",
            "rail": f"rail-optimised, {nodes} a group, one leaf for each rail of a group",
        }[fabric.kind]
        kind += f", oversubscribed {fabric.oversubscription:g} : 1 at the leaf"
    if not fabric.nodes_per_pod:
        return kind
    return f"{kind}, {fabric.pod_oversubscription:g} : 1 at the spine of {fabric.nodes_per_pod} nodes"


def _branches(uplinks: list[Resource]) -> Iterator[str]:
    shown = uplinks if len(uplinks) <= _LEAVES else uplinks[: _LEAVES - 1]
    for index, uplink in enumerate(shown):
        elbow = "'" if index == len(uplinks) - 1 else "|"
        rate = f"{human_bandwidth(uplink.rate.bytes_per_s)} each ({uplink.rate.evidence.kind})"
        yield f"  {elbow}-- {uplink.tail:<18} up and down {rate}"
    if len(shown) < len(uplinks):
        yield f"  '-- and {len(uplinks) - len(shown)} more"


def _gpu_words(node: Node) -> str:
    """'8 x H100-SXM-80GB (80 GB at 3.35 TB/s)', one for each model."""
    models = ((node.gpus.count(model), model) for model in dict.fromkeys(node.gpus))
    return ", ".join(
        f"{count} x {m.name} ({human_bytes(m.memory_bytes)} at {human_bandwidth(m.memory_bytes_per_s)})"
        for count, m in models
    )


def _unknown(node: Node) -> str:
    if node.pcie is None:
        return "PCIe"
    apart = node.pcie.inter_socket is None and len(set(node.pcie.sockets)) > 1
    return "the link between sockets" if apart else ""


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
