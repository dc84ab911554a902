"""Which hosts are together, by labels of cloud nodes (EKS, GKE, OKE, topograph) or AWS, as JSON.

Together: at a switch, in a block, or in an NVLink domain.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.base import BadInput, parse_json
from probes.base.facts import FabricFacts
from probes.fabric.switch_chains import chain_facts
from probes.importers.text import utf8_text

# Closest to the host first. A label of the host's own machine says nothing about switches and is not here.
_NAMED_LAYERS = (
    ("cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block"),
    (
        "oci.oraclecloud.com/rdma.local_block_id",
        "oci.oraclecloud.com/rdma.network_block_id",
        "oci.oraclecloud.com/rdma.hpc_island_id",
    ),
    (
        "network.topology.nvidia.com/leaf",
        "network.topology.nvidia.com/spine",
        "network.topology.nvidia.com/core",
    ),
)
_NUMBERED_LAYERS = (
    (re.compile(r"topology\.k8s\.aws/network-node-layer-(\d{1,2})"), -1),
    (re.compile(r"fabric\.topograph\.run/tier-(\d{1,2})"), 1),
)
_DOMAINS = (
    "nvidia.com/gpu.clique",
    "accelerator.topograph.run/domain",
    "network.topology.nvidia.com/accelerator",
)
_NO_VALUE = ("", "none", "null", "unknown", "no-imds-data", "not-available", "-")
_WORDS = (
    b"topology.k8s.aws/network-node-layer-",
    b"fabric.topograph.run/tier-",
    b'"NetworkNodes"',
    *(key.encode() for key in _DOMAINS),
)
_WORDS += tuple(key.encode() for keys in _NAMED_LAYERS for key in keys)


def recognise(content: bytes, name: str) -> bool:
    """Whether it is JSON that holds one of the labels."""
    is_json = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    return is_json and any(word in content for word in _WORDS)


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """One value for all hosts in it. BadInput where it is neither a list of nodes nor of instances."""
    value = parse_json(utf8_text(content, name), name)
    chains: dict[str, tuple[str, ...]] = {}
    domains: dict[str, str] = {}
    for host, chain, domain in _hosts(value, name):
        if host in chains:
            raise BadInput(f"{name}: the host {host!r} appears twice; give one entry for each")
        chains[host] = chain
        if domain:
            domains[host] = domain
    if not chains:
        raise BadInput(f"{name}: the list of hosts is empty")
    return (chain_facts(chains, domains, name, "cloud-labels"),)


def _hosts(value: Any, name: str) -> Iterator[tuple[str, tuple[str, ...], str | None]]:
    """Name, switches from the closest on, and NVLink domain of each host."""
    entries = value
    if isinstance(value, dict):
        entries = next((value[key] for key in ("Instances", "Nodes", "items") if key in value), [value])
    if not isinstance(entries, list):
        raise BadInput(f"{name}: expected a list of nodes or instances; got {type(entries).__name__}")
    for number, entry in enumerate(entries):
        where = f"{name}: entry {number}"
        if not isinstance(entry, dict):
            raise BadInput(f"{where}: {str(entry)[:40]!r} is not a node")
        if "InstanceId" in entry and "Topology" not in entry:
            yield _instance(entry, where)
        else:
            yield _node(entry, where)


def _instance(entry: Mapping[str, Any], where: str) -> tuple[str, tuple[str, ...], str | None]:
    """An instance of AWS: NetworkNodes from the top down, the block of its UltraServer where it has one."""
    nodes, block = entry.get("NetworkNodes") or [], entry.get("CapacityBlockId")
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise BadInput(f"{where}: NetworkNodes is {str(nodes)[:60]!r}; expected a list of names")
    domain = block if isinstance(block, str) and block else None
    return _name(entry["InstanceId"], where), tuple(reversed(nodes)), domain


def _node(entry: Mapping[str, Any], where: str) -> tuple[str, tuple[str, ...], str | None]:
    metadata = entry.get("metadata")
    source = metadata if isinstance(metadata, dict) else entry
    host = next((source[key] for key in ("name", "Name", "InstanceId", "id") if key in source), None)
    labels: Any = next((source[key] for key in ("labels", "Topology", "Labels") if key in source), {})
    if not isinstance(labels, dict):
        raise BadInput(f"{where}: the labels are {str(labels)[:40]!r}; expected a mapping")
    told = {
        key: label
        for key, label in labels.items()
        if isinstance(label, str) and label.lower() not in _NO_VALUE
    }
    return _name(host, where), _chain(told), next((told[key] for key in _DOMAINS if key in told), None)


def _chain(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The first scheme that the labels follow. A gap ends the chain: what is above it cannot be placed."""
    for keys in _NAMED_LAYERS:
        if keys[0] in labels:
            gap = next((index for index, key in enumerate(keys) if key not in labels), len(keys))
            return tuple(labels[key] for key in keys[:gap])
    for pattern, direction in _NUMBERED_LAYERS:
        found = {int(match[1]): label for key, label in labels.items() if (match := pattern.fullmatch(key))}
        if found:
            return tuple(found[number] for number in sorted(found, key=lambda number: direction * number))
    return ()


def _name(host: Any, where: str) -> str:
    if not isinstance(host, str) or not host:
        raise BadInput(f"{where}: has no name (metadata.name, Name or InstanceId)")
    return host
