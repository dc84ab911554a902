"""Which hosts are together, by labels of cloud nodes (EKS, GKE, OKE, topograph) or AWS: JSON, YAML, table.

Together: at a switch, in a block, or in an NVLink domain. Labels of GPU feature discovery name the model.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.base import BadInput, parse_json
from probes.base.facts import FabricFacts, noted
from probes.fabric.switch_chains import chain_facts
from probes.importers.text import utf8_text, yaml_value

KIND = "cloud-labels"
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
_GPU_LABELS = ("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.present")
_NO_VALUE = ("", "none", "null", "unknown", "no-imds-data", "not-available", "-")
_YAML = re.compile(rb"(?m)^[ \t-]{0,16}(?:kind:[ \t]{1,4}Node(?:List)?[ \t]*$|NetworkNodes:[ \t]*$)")
_TABLE = re.compile(rb"(?m)^[ \t>]{0,16}NAME[ \t]+STATUS[ \t]+[^\n]{0,200}LABELS[ \t]*$")
_WORDS = (
    b"NetworkNodes:",
    _GPU_LABELS[0].encode(),
    b"topology.k8s.aws/network-node-layer-",
    b"fabric.topograph.run/tier-",
    b'"NetworkNodes"',
    *(key.encode() for key in _DOMAINS),
)
_WORDS += tuple(key.encode() for keys in _NAMED_LAYERS for key in keys)


def recognise(content: bytes, name: str) -> bool:
    """Whether it is JSON, YAML of nodes or the table of --show-labels, and holds one of the labels."""
    if not any(word in content for word in _WORDS):
        return False
    is_json = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    return is_json or _YAML.search(content) is not None or _TABLE.search(content) is not None


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """One value for all hosts in it. BadInput where it is neither a list of nodes nor of instances."""
    told: dict[str, _Told] = {}
    for one in _hosts(_value(content, name), name):
        if one.host in told:
            raise BadInput(f"{name}: the host {one.host!r} appears twice; give one entry for each")
        told[one.host] = one
    if not told:
        raise BadInput(f"{name}: the list of hosts is empty")
    bare = [one.host for one in told.values() if one.has_gpus is None]
    with_gpus = [one for one in told.values() if one.has_gpus]
    kept = with_gpus if bare and with_gpus else list(told.values())
    products = tuple(dict.fromkeys(one.product for one in kept if one.product))
    warnings = (
        [f"{len(bare)} nodes without a GPU's labels are left out: {', '.join(bare[:8])}"]
        if len(kept) < len(told)
        else []
    )
    chains = {one.host: one.chain for one in kept}
    domains = {one.host: one.domain for one in kept if one.domain}
    if products and not any(chains.values()) and not domains:
        untold = (
            f"no label of the {len(kept)} hosts tells their switches; labels come from the cloud or topograph"
        )
        return (
            FabricFacts(
                name, KIND, "imported", unknown=(untold,), warnings=tuple(warnings), gpu_names=products
            ),
        )
    return (noted(replace(chain_facts(chains, domains, name, KIND), gpu_names=products), warnings=warnings),)


def _value(content: bytes, name: str) -> Any:
    text = utf8_text(content, name)
    if text.lstrip()[:1] in ("{", "["):
        return parse_json(text, name)
    if _TABLE.search(content):
        return list(_rows(text, name))
    documents = [part for part in re.split(r"(?m)^---[ \t]*$", text) if part.strip()]
    values = [yaml_value(part, name) for part in documents]
    return values[0] if len(values) == 1 else values


def _rows(text: str, name: str) -> Iterator[dict[str, Any]]:
    """The nodes of `kubectl get nodes --show-labels`, whose last column is 'key=value,key=value'."""
    lines = text.split("\n")
    start = next(at for at, line in enumerate(lines) if re.search(r"NAME\s.*LABELS[ \t]*$", line))
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        words = line.split()
        if not words:
            break
        labels = dict(pair.partition("=")[::2] for pair in words[-1].split(","))
        if len(words) < 4 or not all("=" in pair for pair in words[-1].split(",")):
            raise BadInput(
                f"{name}: line {number}: {line.strip()[:60]!r} is no whole row of a node; it may be cut"
            )
        yield {"name": words[0], "labels": labels}


@dataclass(frozen=True)
class _Told:
    """What is told of one host: its switches from the closest on, and its NVLink domain.

    `has_gpus` is None where no label of GPU feature discovery is among its own.
    """

    host: str
    chain: tuple[str, ...]
    domain: str | None
    product: str | None = None
    has_gpus: bool | None = None


def _hosts(value: Any, name: str) -> Iterator[_Told]:
    """What is told of each host."""
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


def _instance(entry: Mapping[str, Any], where: str) -> _Told:
    """An instance of AWS: NetworkNodes from the top down, the block of its UltraServer where it has one."""
    nodes, block = entry.get("NetworkNodes") or [], entry.get("CapacityBlockId")
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise BadInput(f"{where}: NetworkNodes is {str(nodes)[:60]!r}; expected a list of names")
    domain = block if isinstance(block, str) and block else None
    return _Told(_name(entry["InstanceId"], where), tuple(reversed(nodes)), domain)


def _node(entry: Mapping[str, Any], where: str) -> _Told:
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
    product = told.get(_GPU_LABELS[0], "").removesuffix("-SHARED") or None
    has_gpus = True if any(key in told for key in _GPU_LABELS) else None
    domain = next((told[key] for key in _DOMAINS if key in told), None)
    return _Told(_name(host, where), _chain(told), domain, product, has_gpus)


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
