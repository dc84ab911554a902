"""A machine from plain data, in the schema of topology files (planner/topology/to_dict.py writes it).

    name: lab                       # a drawing in comments above it
    source: who says so
    gpu_models: {...}               # optional; names are looked up in planner/data/gpus.yaml otherwise
    nodes:
      - count: 2                    # so many alike
        names: [n1, n2]             # optional
        gpus: {model: H100-SXM, count: 8}          # or a list of names, one for each GPU
        nvlink:                     # or kind: mesh | bridge, pairs: [{gpus: [[0, 1], ...], rate: RATE}]
          kind: switch
          islands: [{gpus: [0, 1, ...], rate: RATE}]
        pcie:
          rate: RATE
          sockets: [0, 0, ...]
          switches: [{gpus: [[0, 1], ...], nics: [[0], ...], uplink: RATE}]
          inter_socket: RATE
        nics: [{gpus: [[0], [1], ...], rails: [0, 1, ...], rate: RATE, names: [...], socket: 0}]
        speed: 0.9                  # optional: compute beside others of the model, or a list of one a GPU
        devices: [0, 1, 3]          # optional: the driver's numbers of the GPUs, where the host has more
        faults: [a sentence, ...]   # optional: what was found wrong with them
    fabric:
      {kind: rail, nodes_per_leaf: 32, oversubscription: 1, nvlink_domain_nodes: 1,
       evidence: assumed, source: why}
    calibration: {...}              # optional: planner/topology/calibration_dict.py

RATE is {value: 450 GB/s, evidence: preset, source: publication}, per direction; `rate` may be a list with one
RATE for each GPU. A speed of 1.0 is nominal. What is not known is left out.
"""

from dataclasses import replace
from typing import Any

from planner.base import BadInput, GpuModel
from planner.topology.calibrated import calibrated
from planner.topology.calibration_dict import calibration_from_dict
from planner.topology.fabric import Fabric
from planner.topology.figures_from_dict import evidence_of
from planner.topology.gpu_models import gpu_model, gpu_model_from_dict
from planner.topology.links_from_dict import nics_from_dict, nvlink_from_dict, pcie_from_dict
from planner.topology.machine import LARGEST_GPUS
from planner.topology.machine_shape import TOPOLOGY
from planner.topology.nodes import Node
from planner.topology.nvlink import NO_NVLINK
from planner.topology.topology import Topology

_COUNTS = ("nodes_per_leaf", "nvlink_domain_nodes", "nodes_per_pod")
_RATIOS = ("oversubscription", "pod_oversubscription")


def topology_from_dict(data: Any, where: str = "topology") -> Topology:
    """The topology of plain data in the schema above. BadInput names the place in `where` and the value."""
    TOPOLOGY.check(data, where)
    own = {
        name: gpu_model_from_dict(entry, name, f"{where}: gpu_models: {name}")
        for name, entry in data.get("gpu_models", {}).items()
    }
    try:
        nodes = _all_nodes(data["nodes"], own, where)
        fabric = _fabric(data["fabric"], f"{where}: fabric")
        topology = Topology(data["name"], nodes, fabric, data["source"])
    except BadInput as error:
        raise error if str(error).startswith(f"{where}:") else BadInput(f"{where}: {error}") from error
    if "calibration" not in data:
        return topology
    of_runs = f"{where}: calibration"
    return calibrated(topology, calibration_from_dict(data["calibration"], of_runs), of_runs)


def _all_nodes(entries: list[Any], own: dict[str, GpuModel], where: str) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for index, entry in enumerate(entries):
        nodes += _nodes(entry, own, f"{where}: nodes[{index}]")
        if len(nodes) > LARGEST_GPUS:
            raise BadInput(
                f"{where}: nodes[{index}]: more than {LARGEST_GPUS:,} nodes by here; "
                "we plan for so many GPUs at most"
            )
    return tuple(nodes)


def _nodes(entry: Any, own: dict[str, GpuModel], where: str) -> tuple[Node, ...]:
    """Nodes that differ in nothing but their name."""
    count: int = entry.get("count", 1)
    node = _node(entry, own, where)
    names = entry.get("names", [])
    if not names:
        return (node,) * count
    if len(names) != count:
        asked = "give one text for each"
        raise BadInput(f"{where}: 'names' holds {len(names)} entries for {count} nodes; {asked}")
    return tuple(replace(node, name=name) for name in names)


def _node(entry: dict[str, Any], own: dict[str, GpuModel], where: str) -> Node:
    gpus = _gpus(entry["gpus"], own, where)
    groups = enumerate(entry.get("nics", []))
    nics = [nic for index, group in groups for nic in nics_from_dict(group, f"{where}: nics[{index}]")]
    nvlink = nvlink_from_dict(entry["nvlink"], f"{where}: nvlink") if "nvlink" in entry else NO_NVLINK
    pcie = pcie_from_dict(entry["pcie"], len(gpus), f"{where}: pcie") if "pcie" in entry else None
    faults, devices = tuple(entry.get("faults", [])), tuple(entry.get("devices", []))
    try:
        speeds = _speeds(entry.get("speed", []), len(gpus))
        return Node(gpus, nvlink, pcie, tuple(nics), faults=faults, speeds=speeds, devices=devices)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _speeds(entry: Any, count: int) -> tuple[float, ...]:
    """One factor for each GPU; none where all are nominal."""
    speeds = entry if isinstance(entry, list) else [entry] * count
    nominal = all(speed == 1 for speed in speeds) and len(speeds) in (0, count)
    return () if nominal else tuple(map(float, speeds))


def _gpus(entry: Any, own: dict[str, GpuModel], where: str) -> tuple[GpuModel, ...]:
    if isinstance(entry, dict):
        entry = [entry["model"]] * entry["count"]
    return tuple(own[name] if name in own else gpu_model(name, where) for name in entry)


def _fabric(entry: Any, where: str) -> Fabric:
    """With what was stated of it, where its uplinks were measured."""
    figures = {key: entry[key] for key in _COUNTS if key in entry}
    figures |= {key: float(entry[key]) for key in _RATIOS if key in entry}
    stated = _fabric(entry["stated"], f"{where}: stated") if "stated" in entry else None
    return Fabric(entry["kind"], evidence_of(entry, where), stated=stated, **figures)
