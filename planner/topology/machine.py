"""The nodes of a machine together: checked, narrowed, less those that are lost, with speeds.

`where` names the machine in what is refused.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from planner.base import BadInput, GpuModel
from planner.topology.fabric import Fabric
from planner.topology.nodes import Node

LARGEST_GPUS = 65_536


def by_first_rank(nodes: Iterable[Node]) -> Iterator[tuple[int, Node]]:
    """Each node beside the rank of its first GPU."""
    rank = 0
    for node in nodes:
        yield rank, node
        rank += len(node.gpus)


def check_machine(where: str, nodes: tuple[Node, ...], fabric: Fabric) -> None:
    """BadInput: no node, too many GPUs, or a node that does not go with another or with the fabric."""
    if not nodes:
        raise BadInput(f"{where}: has no nodes")
    gpus = sum(len(node.gpus) for node in nodes)
    if gpus > LARGEST_GPUS:
        raise BadInput(
            f"{where}: {gpus:,} GPUs are more than the {LARGEST_GPUS:,} we plan for; take fewer nodes"
        )
    models: dict[str, GpuModel] = {}
    for node in dict.fromkeys(nodes):
        _check_node(where, node, fabric.nvlink_domain_nodes, models)


def _check_node(where: str, node: Node, span: int, models: dict[str, GpuModel]) -> None:
    """Beside the other nodes, whose GPU models are in `models`; an NVLink domain has `span` nodes."""
    for model in node.gpus:
        if models.setdefault(model.name, model) != model:
            raise BadInput(
                f"{where}: the GPU model {model.name} appears with two sets of figures; name them apart"
            )
    if span > 1 and len(node.nvlink.islands) != 1:
        raise BadInput(f"{where}: an NVLink domain of {span} nodes needs nodes with one NVLink switch island")


def first_nodes(
    where: str, nodes: tuple[Node, ...], count: int, gpus_per_node: int | None
) -> tuple[Node, ...]:
    """The first `count` nodes, and the first `gpus_per_node` GPUs of each."""
    if not 1 <= count <= len(nodes):
        raise BadInput(f"{where} has {len(nodes)} nodes; cannot take {count} of them")
    first: dict[Node, Node] = {}
    for node in nodes[:count]:
        if node not in first:
            first[node] = node if gpus_per_node is None else node.first(gpus_per_node)
    return tuple(first[node] for node in nodes[:count])


def nodes_left(where: str, nodes: tuple[Node, ...], lost: Collection[int]) -> tuple[Node, ...]:
    """The nodes less the GPUs of these ranks; a node that lost all is gone."""
    kept_by_node: list[Node] = []
    for start, node in by_first_rank(nodes):
        gone = [gpu for gpu in range(len(node.gpus)) if start + gpu in lost]
        if len(gone) < len(node.gpus):
            kept_by_node.append(node.without(gone) if gone else node)
    if not kept_by_node:
        gpus = sum(len(node.gpus) for node in nodes)
        raise BadInput(f"{where}: all {gpus} GPUs are lost; nothing is left to serve")
    return tuple(kept_by_node)


def nodes_at_speeds(where: str, nodes: tuple[Node, ...], speed_of: Mapping[int, float]) -> tuple[Node, ...]:
    """The nodes with these speeds for GPUs by rank; the others keep theirs."""
    gpus = sum(len(node.gpus) for node in nodes)
    absent = sorted(set(speed_of) - set(range(gpus)))
    if absent:
        raise BadInput(f"{where}: a speed is given for GPU {absent[0]}; its GPUs are 0 to {gpus - 1}")
    found = []
    for start, node in by_first_rank(nodes):
        before = node.speeds or (1.0,) * len(node.gpus)
        own = tuple(float(speed_of.get(start + gpu, speed)) for gpu, speed in enumerate(before))
        found.append(replace(node, speeds=() if set(own) == {1.0} else own))
    return tuple(found)
