"""Machine values to plain data, in the schema of topology files (planner/topology/from_dict.py reads it).

Quantities keep every digit.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from planner.base import Evidence, GpuModel, Rate, parse_bandwidth, parse_bytes, parse_flops
from planner.topology.fabric import Fabric
from planner.topology.nodes import Nic, Node
from planner.topology.nvlink import NvLink
from planner.topology.pcie import Pcie, PcieSwitch


def machine_to_dict(nodes: tuple[Node, ...], fabric: Fabric) -> dict[str, Any]:
    models = {model.name: _gpu_model(model) for node in dict.fromkeys(nodes) for model in node.gpus}
    # nodes that differ in nothing but their name are one entry
    entries = [_node(node, [member.name for member in group]) for node, group in alike(nodes)]
    return {"gpu_models": dict(sorted(models.items())), "nodes": entries, "fabric": _fabric(fabric)}


def alike(nodes: tuple[Node, ...]) -> list[tuple[Node, list[Node]]]:
    """Consecutive nodes that differ in nothing but their name."""
    groups = groupby(nodes, key=lambda node: replace(node, name=""))
    return [(nameless, list(group)) for nameless, group in groups]


def _node(node: Node, names: list[str]) -> dict[str, Any]:
    gpus = [model.name for model in node.gpus]
    entry: dict[str, Any] = {"count": len(names)}
    if any(names):
        entry["names"] = names
    entry["gpus"] = {"model": gpus[0], "count": len(gpus)} if len(set(gpus)) == 1 else gpus
    if node.nvlink.kind != "none":
        entry["nvlink"] = _nvlink(node.nvlink)
    if node.pcie is not None:
        entry["pcie"] = _pcie(node.pcie)
    if node.nics:
        groups = groupby(node.nics, key=lambda nic: (nic.rate, nic.socket))
        entry["nics"] = [_nics(list(group)) for _, group in groups]
    if node.speeds:
        entry["speed"] = node.speeds[0] if len(set(node.speeds)) == 1 else list(node.speeds)
    if node.devices:
        entry["devices"] = list(node.devices)
    if node.faults:
        entry["faults"] = list(node.faults)
    return entry


def _nvlink(nvlink: NvLink) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": nvlink.kind}
    if nvlink.islands:
        entry["islands"] = [
            {"gpus": list(island.gpus), "rate": _rates(island.rates)} for island in nvlink.islands
        ]
    if nvlink.pairs:
        groups = groupby(nvlink.pairs, key=lambda link: link.rate)
        entry["pairs"] = [
            {"gpus": [list(link.gpus) for link in group], "rate": _rate(rate)} for rate, group in groups
        ]
    return entry


def _pcie(pcie: Pcie) -> dict[str, Any]:
    entry: dict[str, Any] = {"rate": _rates(pcie.rates), "sockets": list(pcie.sockets)}
    if pcie.switches:
        groups = groupby(pcie.switches, key=lambda switch: switch.uplink)
        entry["switches"] = [_pcie_switches(list(group), rate) for rate, group in groups]
    if pcie.inter_socket is not None:
        entry["inter_socket"] = _rate(pcie.inter_socket)
    return entry


def _pcie_switches(switches: list[PcieSwitch], uplink: Rate) -> dict[str, Any]:
    return {
        "gpus": [list(switch.gpus) for switch in switches],
        "nics": [list(switch.nics) for switch in switches],
        "uplink": _rate(uplink),
    }


def _nics(nics: list[Nic]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "rate": _rate(nics[0].rate),
        "gpus": [list(nic.gpus) for nic in nics],
        "rails": [nic.rail for nic in nics],
    }
    if any(nic.name for nic in nics):
        entry["names"] = [nic.name for nic in nics]
    if nics[0].socket is not None:
        entry["socket"] = nics[0].socket
    return entry


def _fabric(fabric: Fabric) -> dict[str, Any]:
    return {
        "kind": fabric.kind,
        "nodes_per_leaf": fabric.nodes_per_leaf,
        "oversubscription": fabric.oversubscription,
        "nvlink_domain_nodes": fabric.nvlink_domain_nodes,
        "nodes_per_pod": fabric.nodes_per_pod,
        "pod_oversubscription": fabric.pod_oversubscription,
        **_evidence(fabric.evidence),
        **({} if fabric.stated is None else {"stated": _fabric(fabric.stated)}),
    }


def _gpu_model(model: GpuModel) -> dict[str, Any]:
    return {
        "memory": _exact(model.memory_bytes, 1e9, "GB", "B", parse_bytes),
        "memory_rate": _exact(model.memory_bytes_per_s, 1e9, "GB/s", "B/s", parse_bandwidth),
        "flops": {
            dtype: _exact(rate, 1e12, "TFLOP/s", "FLOP/s", parse_flops)
            for dtype, rate in model.flops_per_s.items()
        },
        **_evidence(model.evidence),
    }


def _rates(rates: Sequence[Rate]) -> dict[str, Any] | list[dict[str, Any]]:
    return _rate(rates[0]) if len(set(rates)) == 1 else [_rate(rate) for rate in rates]


def _rate(rate: Rate) -> dict[str, Any]:
    value = _exact(rate.bytes_per_s, 1e9, "GB/s", "B/s", parse_bandwidth)
    stated = {} if rate.stated is None else {"stated": _rate(rate.stated)}
    return {"value": value, **_evidence(rate.evidence), **stated}


def _evidence(evidence: Evidence) -> dict[str, str]:
    return {"evidence": evidence.kind, "source": evidence.source}


def _exact(value: float, scale: float, unit: str, base: str, parse: Any) -> str:
    """'450 GB/s' where that reads back to the same number, else all digits in the base unit."""
    short = f"{value / scale:g} {unit}"
    return short if parse(short) == value else f"{float(value)!r} {base}"
