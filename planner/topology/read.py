"""Topology from text: a preset's name with counts, or a topology file. One schema for both.

    name: lab                       # a drawing in comments above it
    source: who says so
    gpu_models: {...}               # optional; names are looked up in planner/data/gpus.yaml otherwise
    nodes:
      - count: 2                    # so many alike
        names: [n1, n2]             # optional
        gpus: {model: H100-SXM, count: 8}          # or a list of names, one for each GPU
        nvlink: {kind: switch, islands: [{gpus: [0, 1, ...], rate: RATE}]}       # or kind: mesh | bridge, pairs: [{gpus: [[0, 1], ...], rate: RATE}]
        pcie: {rate: RATE, sockets: [0, 0, ...], switches: [{gpus: [[0, 1], ...], nics: [[0], ...], uplink: RATE}], inter_socket: RATE}
        nics: [{gpus: [[0], [1], ...], rails: [0, 1, ...], rate: RATE, names: [...], socket: 0}]
        speed: 0.9                  # optional: compute beside others of the model, 1.0 is nominal; or a list with one for each GPU
        faults: [a sentence, ...]   # optional: what was found wrong with them
    fabric: {kind: rail, nodes_per_leaf: 32, oversubscription: 1, nvlink_domain_nodes: 1, evidence: assumed, source: why}

RATE is {value: 450 GB/s, evidence: preset, source: publication}, per direction; `rate` may be a list with one RATE for each GPU. What is not known is left out.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from planner.base import (
    BadInput,
    Evidence,
    GpuModel,
    Rate,
    check_keys,
    data_file,
    nearest,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    read_json,
    read_yaml,
    topologies_folder,
    topology_names,
)
from planner.topology.nodes import (
    LARGEST_NODE_GPUS,
    Fabric,
    Island,
    Nic,
    Node,
    NvLink,
    PairLink,
    Pcie,
    PcieSwitch,
)
from planner.topology.topology import LARGEST_GPUS, Topology

_FILE_SUFFIXES = (".yaml", ".yml", ".json")
_NUMBER = (int, float)
_OF_NODE: dict[str, type | tuple[type, ...]] = {
    "count": int, "names": list, "nvlink": dict, "pcie": dict, "nics": list, "speed": (*_NUMBER, list), "faults": list,
}  # fmt: skip


def read_topology(text: str) -> Topology:
    """The topology of 'NAME[:NODES[xGPUS]]' or 'FILE.yaml' or 'FILE.json'. The counts take the first nodes, and the first GPUs of each.

    'hgx-h100' is one node, 'gb200-nvl72' one rack of 18; 'hgx-h100:4' four nodes; 'hgx-h100:4x2' two GPUs of each of four nodes.
    """
    name, colon, counts = (
        (text, "", "") if text.lower().endswith(_FILE_SUFFIXES) or ":" not in text else text.rpartition(":")
    )
    if name.lower().endswith(_FILE_SUFFIXES):
        path, data = name, read_json(name) if name.lower().endswith(".json") else read_yaml(name)
    else:
        path, data = _preset(name)
    topology = topology_from_dict(data, path)
    return _counted(topology, text, counts) if colon else topology


def _preset(name: str) -> tuple[str, Any]:
    names = topology_names()
    if name.lower() not in names:
        raise BadInput(
            f"topology {name!r} is not known; did you mean {nearest(name, names)}? 'moeplan topology list' shows all; a file ends in .yaml or .json"
        )
    return name.lower(), read_yaml(topologies_folder() / f"{name.lower()}.yaml")


def _counted(topology: Topology, text: str, counts: str) -> Topology:
    """A machine of one kind of node is repeated as often as asked; one of several kinds is cut."""
    match = re.fullmatch(r"([0-9]{1,9})(?:[xX]([0-9]{1,9}))?", counts)
    alike = len(set(topology.nodes)) == 1
    gpus = min(len(node.gpus) for node in topology.nodes)
    most = LARGEST_GPUS // gpus if alike else topology.node_count
    nodes, per_node = (int(match[1]), int(match[2]) if match[2] else None) if match else (0, None)
    if not (1 <= nodes <= most and 1 <= (per_node or 1) <= gpus) or (match and match[2] and not per_node):
        example = f"{topology.name}:{min(4, most)}"
        raise BadInput(
            f"topology {text!r}: after the colon come 1 to {most} nodes, then perhaps x and 1 to {gpus} GPUs of each: {example} or {example}x{gpus}"
        )
    name = f"{topology.name}:{nodes}" + (f"x{per_node}" if per_node else "")
    if alike:
        node = topology.nodes[0]
        return replace(topology, name=name, nodes=(node.first(per_node) if per_node else node,) * nodes)
    return replace(topology.select(nodes, per_node), name=name)


def topology_from_dict(data: Any, where: str = "topology") -> Topology:
    """The topology of plain data in the schema above. BadInput names the place in `where` and the value."""
    check_keys(data, where, {"name": str, "source": str, "nodes": list, "fabric": dict}, {"gpu_models": dict})
    own = {
        name: _gpu_model(entry, name, f"{where}: gpu_models: {name}")
        for name, entry in data.get("gpu_models", {}).items()
    }
    try:
        return Topology(
            data["name"],
            _all_nodes(data["nodes"], own, where),
            _fabric(data["fabric"], f"{where}: fabric"),
            data["source"],
        )
    except BadInput as error:
        raise error if str(error).startswith(f"{where}:") else BadInput(f"{where}: {error}") from error


def _all_nodes(entries: list[Any], own: dict[str, GpuModel], where: str) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for index, entry in enumerate(entries):
        nodes += _nodes(entry, own, f"{where}: nodes[{index}]")
        if len(nodes) > LARGEST_GPUS:
            raise BadInput(
                f"{where}: nodes[{index}]: more than {LARGEST_GPUS:,} nodes by here; we plan for so many GPUs at most"
            )
    return tuple(nodes)


def _nodes(entry: Any, own: dict[str, GpuModel], where: str) -> tuple[Node, ...]:
    check_keys(entry, where, {"gpus": (dict, list)}, _OF_NODE)
    count = entry.get("count", 1)
    if not 1 <= count <= LARGEST_GPUS:
        raise BadInput(f"{where}: 'count' is {count}; a machine has 1 to {LARGEST_GPUS:,} nodes")
    gpus = _gpus(entry["gpus"], own, where)
    nics = tuple(
        nic
        for index, group in enumerate(entry.get("nics", []))
        for nic in _nics(group, f"{where}: nics[{index}]")
    )
    nvlink = _nvlink(entry["nvlink"], f"{where}: nvlink") if "nvlink" in entry else NvLink()
    pcie = _pcie(entry["pcie"], len(gpus), f"{where}: pcie") if "pcie" in entry else None
    try:
        node = Node(
            gpus,
            nvlink,
            pcie,
            nics,
            faults=tuple(map(str, entry.get("faults", []))),
            speeds=_speeds(entry.get("speed", []), len(gpus), where),
        )
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error
    names = entry.get("names", [])
    if names and (len(names) != count or not all(isinstance(name, str) for name in names)):
        raise BadInput(
            f"{where}: 'names' holds {len(names)} entries for {count} nodes; give one text for each"
        )
    return tuple(replace(node, name=name) for name in names) if names else (node,) * count


def _speeds(entry: Any, count: int, where: str) -> tuple[float, ...]:
    """One factor for each GPU; none where all are nominal."""
    speeds = entry if isinstance(entry, list) else [entry] * count
    for speed in speeds:
        if isinstance(speed, bool) or not isinstance(speed, _NUMBER):
            raise BadInput(f"{where}: speed: {speed!r} is not a number; 1.0 is nominal")
    return (
        () if len(speeds) in (0, count) and all(speed == 1 for speed in speeds) else tuple(map(float, speeds))
    )


def _gpus(entry: Any, own: dict[str, GpuModel], where: str) -> tuple[GpuModel, ...]:
    if isinstance(entry, dict):
        check_keys(entry, f"{where}: gpus", {"model": str, "count": int})
        if not 1 <= entry["count"] <= LARGEST_NODE_GPUS:
            raise BadInput(f"{where}: gpus: 'count' is {entry['count']}; a node has 1 to {LARGEST_NODE_GPUS}")
        entry = [entry["model"]] * entry["count"]
    return tuple(
        own[name] if isinstance(name, str) and name in own else gpu_model(name, where) for name in entry
    )


def gpu_model(name: Any, where: str = "GPU model") -> GpuModel:
    """The figures of a GPU model by its name in planner/data/gpus.yaml."""
    shipped = _shipped_gpu_models()
    if not isinstance(name, str) or name not in shipped:
        raise BadInput(
            f"{where}: GPU model {name!r} is not known; did you mean {nearest(str(name), list(shipped))}? or describe it under gpu_models"
        )
    return shipped[name]


@lru_cache(maxsize=1)
def _shipped_gpu_models() -> dict[str, GpuModel]:
    path = data_file("gpus.yaml")
    return {name: _gpu_model(entry, name, f"{path.name}: {name}") for name, entry in read_yaml(path).items()}


def _gpu_model(entry: Any, name: Any, where: str) -> GpuModel:
    check_keys(
        entry, where, {"memory": str, "memory_rate": str, "flops": dict, "evidence": str, "source": str}
    )
    flops = {
        str(dtype): _quantity(parse_flops, value, f"{where}: flops: {dtype}")
        for dtype, value in entry["flops"].items()
    }
    memory = _quantity(parse_bytes, entry["memory"], f"{where}: memory")
    return GpuModel(
        str(name),
        memory,
        _quantity(parse_bandwidth, entry["memory_rate"], f"{where}: memory_rate"),
        flops,
        _evidence(entry, where),
    )


def _nvlink(entry: Any, where: str) -> NvLink:
    check_keys(entry, where, {"kind": str}, {"islands": list, "pairs": list})
    islands, pairs = [], []
    for index, island in enumerate(entry.get("islands", [])):
        check_keys(island, f"{where}: islands[{index}]", {"gpus": list, "rate": (dict, list)})
        gpus = _members(island["gpus"], f"{where}: islands[{index}]: gpus")
        islands.append(Island(gpus, _rates(island["rate"], len(gpus), f"{where}: islands[{index}]: rate")))
    for index, group in enumerate(entry.get("pairs", [])):
        check_keys(group, f"{where}: pairs[{index}]", {"gpus": list, "rate": dict})
        rate = _rate(group["rate"], f"{where}: pairs[{index}]: rate")
        for pair in group["gpus"]:
            members = _members(pair, f"{where}: pairs[{index}]: gpus")
            if len(members) != 2:
                raise BadInput(f"{where}: pairs[{index}]: {pair} is not a pair of two GPUs")
            pairs.append(PairLink((members[0], members[1]), rate))
    return NvLink(entry["kind"], tuple(islands), tuple(pairs))


def _pcie(entry: Any, gpu_count: int, where: str) -> Pcie:
    check_keys(
        entry, where, {"rate": (dict, list)}, {"sockets": list, "switches": list, "inter_socket": dict}
    )
    sockets = _members(entry.get("sockets", [0] * gpu_count), f"{where}: sockets")
    switches = []
    for index, group in enumerate(entry.get("switches", [])):
        here = f"{where}: switches[{index}]"
        check_keys(group, here, {"gpus": list, "uplink": dict}, {"nics": list})
        uplink = _rate(group["uplink"], f"{here}: uplink")
        nics = group.get("nics", [[]] * len(group["gpus"]))
        if len(nics) != len(group["gpus"]):
            raise BadInput(
                f"{here}: 'nics' lists {len(nics)} switches, 'gpus' {len(group['gpus'])}; give each switch its list of both"
            )
        switches += [
            PcieSwitch(_members(g, f"{here}: gpus"), uplink, _members(n, f"{here}: nics"))
            for g, n in zip(group["gpus"], nics, strict=True)
        ]
    inter_socket = _rate(entry["inter_socket"], f"{where}: inter_socket") if "inter_socket" in entry else None
    return Pcie(_rates(entry["rate"], gpu_count, f"{where}: rate"), sockets, tuple(switches), inter_socket)


def _nics(entry: Any, where: str) -> list[Nic]:
    check_keys(entry, where, {"gpus": list, "rate": dict}, {"rails": list, "names": list, "socket": int})
    rate = _rate(entry["rate"], f"{where}: rate")
    count = len(entry["gpus"])
    rails = _members(entry.get("rails", [0] * count), f"{where}: rails")
    names = entry.get("names", [""] * count)
    if len(rails) != count or len(names) != count or not all(isinstance(name, str) for name in names):
        raise BadInput(
            f"{where}: lists {count} NICs under 'gpus'; 'rails' and 'names' need one entry for each"
        )
    return [
        Nic(rate, _members(g, f"{where}: gpus"), rail, name, entry.get("socket"))
        for g, rail, name in zip(entry["gpus"], rails, names, strict=True)
    ]


def _fabric(entry: Any, where: str) -> Fabric:
    optional: dict[str, type | tuple[type, ...]] = {
        "nodes_per_leaf": int,
        "nvlink_domain_nodes": int,
        "nodes_per_pod": int,
    }
    ratios: dict[str, type | tuple[type, ...]] = {
        "oversubscription": _NUMBER,
        "pod_oversubscription": _NUMBER,
    }
    check_keys(entry, where, {"kind": str, "evidence": str, "source": str}, {**optional, **ratios})
    figures = {key: entry[key] for key in optional if key in entry} | {
        key: float(entry[key]) for key in ratios if key in entry
    }
    return Fabric(entry["kind"], _evidence(entry, where), **figures)


def _rates(entry: Any, count: int, where: str) -> tuple[Rate, ...]:
    if isinstance(entry, list):
        return tuple(_rate(one, f"{where}[{index}]") for index, one in enumerate(entry))
    return (_rate(entry, where),) * count


def _rate(entry: Any, where: str) -> Rate:
    check_keys(entry, where, {"value": str, "evidence": str, "source": str})
    value = _quantity(parse_bandwidth, entry["value"], where)
    try:
        return Rate(value, _evidence(entry, where))
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _evidence(entry: dict[str, Any], where: str) -> Evidence:
    try:
        return Evidence(entry["evidence"], entry["source"])
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _quantity(parse: Any, value: Any, where: str) -> float:
    try:
        return float(parse(value))
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _members(entry: Any, where: str) -> tuple[int, ...]:
    if not isinstance(entry, list) or not all(
        isinstance(member, int) and not isinstance(member, bool) for member in entry
    ):
        raise BadInput(f"{where}: {entry!r} is not a list of whole numbers")
    return tuple(entry)
