"""Topology from text: a preset's name with counts, or a topology file. One schema for both."""

import re
from dataclasses import replace
from typing import Any

from planner.base import BadInput, nearest, read_json, read_yaml, topologies_folder, topology_names
from planner.topology.from_dict import topology_from_dict
from planner.topology.machine import LARGEST_GPUS
from planner.topology.topology import Topology

_FILE_SUFFIXES = (".yaml", ".yml", ".json")


def read_topology(text: str) -> Topology:
    """The topology of 'NAME[:NODES[xGPUS]]' or 'FILE.yaml' or 'FILE.json'.

    The counts take the first nodes, and the first GPUs of each. 'hgx-h100' is one node, 'gb200-nvl72' one
    rack of 18; 'hgx-h100:4' four nodes; 'hgx-h100:4x2' two GPUs of each of four nodes.
    """
    name, colon, counts = text, "", ""
    if ":" in text and not _is_file(text):
        name, colon, counts = text.rpartition(":")
    path, data = (name, _file(name)) if _is_file(name) else _preset(name)
    topology = topology_from_dict(data, path)
    return _counted(topology, text, counts) if colon else topology


def _is_file(name: str) -> bool:
    return name.lower().endswith(_FILE_SUFFIXES)


def _file(path: str) -> Any:
    return read_json(path) if path.lower().endswith(".json") else read_yaml(path)


def _preset(name: str) -> tuple[str, Any]:
    names = topology_names()
    if name.lower() not in names:
        raise BadInput(
            f"topology {name!r} is not known; did you mean {nearest(name, names)}? "
            "'moeplan topology list' shows all; a file ends in .yaml or .json"
        )
    return name.lower(), read_yaml(topologies_folder() / f"{name.lower()}.yaml")


def _counted(topology: Topology, text: str, counts: str) -> Topology:
    """A machine of one kind of node is repeated as often as asked; one of several kinds is cut."""
    alike = len(set(topology.nodes)) == 1
    gpus = min(len(node.gpus) for node in topology.nodes)
    most = LARGEST_GPUS // gpus if alike else topology.node_count
    nodes, per_node = _numbers(counts)
    if not (1 <= nodes <= most and (per_node is None or 1 <= per_node <= gpus)):
        example = f"{topology.name}:{min(4, most)}"
        raise BadInput(
            f"topology {text!r}: after the colon come 1 to {most} nodes, "
            f"then perhaps x and 1 to {gpus} GPUs of each: {example} or {example}x{gpus}"
        )
    name = f"{topology.name}:{nodes}" + (f"x{per_node}" if per_node else "")
    if alike:
        node = topology.nodes[0]
        return replace(topology, name=name, nodes=(node.first(per_node) if per_node else node,) * nodes)
    return replace(topology.select(nodes, per_node), name=name)


def _numbers(counts: str) -> tuple[int, int | None]:
    """Of 'NODES' or 'NODESxGPUS'; no nodes where it is neither."""
    match = re.fullmatch(r"([0-9]{1,9})(?:[xX]([0-9]{1,9}))?", counts)
    if not match:
        return 0, None
    return int(match[1]), int(match[2]) if match[2] else None
