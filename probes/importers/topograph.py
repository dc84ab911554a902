"""NVIDIA topograph: its cluster models (YAML) and the JSON that its graph engine writes.

A model has switches, blocks and nodes; a graph has instances with their switches, closest first.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.base import BadInput, parse_json
from probes.base.facts import FabricFacts
from probes.fabric.hostlist import LARGEST_LIST, expand_hosts
from probes.fabric.switch_chains import chain_facts
from probes.fabric.switch_tree import Tree, tree_facts
from probes.importers.text import utf8_text, yaml_value

_YAML = re.compile(rb"^switches:[ \t]{0,9}\r?$", re.MULTILINE)
_YAML_HOSTS = re.compile(rb"^(?:blocks|nodes|capacity_blocks):|^[ \t]{1,20}nodes:", re.MULTILINE)
# how the label of an NVLink domain ends, in the versions seen
_DOMAIN = ("/domain", "/level-0", "/accelerator")


def recognise(content: bytes, name: str) -> bool:
    """Whether it is a model or a graph."""
    if content.lstrip()[:1] == b"{":
        return b'"instances"' in content and b'"network_layers"' in content
    return bool(_YAML.search(content) and _YAML_HOSTS.search(content))


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """One value; its blocks are the NVLink domains (accelerator domains) that the source names."""
    text = utf8_text(content, name)
    if text.lstrip()[:1] == "{":
        return (_read_graph(text, name),)
    return (_read_model(yaml_value(text, name), name),)


def _read_graph(text: str, name: str) -> FabricFacts:
    instances = parse_json(text, name).get("instances")
    if not isinstance(instances, list) or not instances:
        raise BadInput(f"{name}: 'instances' must be a list with an entry for each host")
    chains: dict[str, tuple[str, ...]] = {}
    domains: dict[str, str] = {}
    for number, instance in enumerate(instances):
        where = f"{name}: instance {number}"
        host = instance.get("id") if isinstance(instance, dict) else None
        if not isinstance(host, str) or not host or host in chains:
            raise BadInput(f"{where}: 'id' is {host!r}; expected a name that no other instance has")
        chains[host] = _names(instance.get("network_layers") or [], f"{where} ({host})")
        domain = _domain(instance.get("labels"), where)
        if domain:
            domains[host] = domain
    return chain_facts(chains, domains, name, "topograph-graph")


def _read_model(model: Any, name: str) -> FabricFacts:
    if not isinstance(model, dict):
        raise BadInput(f"{name}: expected a mapping with 'switches'; got {type(model).__name__}")
    found = _Found(name)
    for block, value in _entries(model, "capacity_blocks", name):
        found.capacity_block(block, value)
    for switch, value in _entries(model, "switches", name):
        found.switch(switch, value)
    for number, block in enumerate(_list(model, "blocks", name)):
        found.block(block, f"{name}: block {number}")
    for host, value in _entries(model, "nodes", name):
        found.node(host, value)
    if not any(found.hosts.values()):
        raise BadInput(f"{name}: no switch has hosts; 'blocks' or 'nodes' name them")
    leaves = {leaf: below for leaf, below in found.hosts.items() if below}
    return tree_facts(Tree(found.children, leaves, found.blocks), name, "topograph-model")


@dataclass
class _Found:
    """What a model's entries said; `left` is how many names the file may still bring."""

    name: str
    children: dict[str, list[str]] = field(default_factory=dict)
    hosts: dict[str, list[str]] = field(default_factory=dict)
    blocks: dict[str, list[str]] = field(default_factory=dict)
    capacity: dict[str, list[str]] = field(default_factory=dict)  # capacity block -> its hosts
    left: int = LARGEST_LIST

    def capacity_block(self, block: str, value: Mapping[str, Any]) -> None:
        inside = self.capacity[block] = self.expand(
            value.get("nodes"), f"{self.name}: capacity block {block}"
        )
        nvlink = value.get("nvlink")
        if isinstance(nvlink, str) and nvlink:
            self.blocks.setdefault(nvlink, []).extend(inside)

    def switch(self, switch: str, value: Mapping[str, Any]) -> None:
        where = f"{self.name}: switch {switch}"
        self.children[switch] = self.expand(value.get("switches"), where)
        self.hosts[switch] = self.expand(value.get("nodes"), where)
        for block in self.expand(value.get("capacity_blocks"), where):
            self.hosts[switch] += self.capacity.get(block, [])

    def block(self, block: Any, where: str) -> None:
        leaf = block.get("switch") if isinstance(block, dict) else None
        if not isinstance(leaf, str):
            raise BadInput(f"{where}: 'switch' is {leaf!r}; expected the name of the leaf it hangs on")
        inside = self.expand(block.get("nodes"), where)
        self.hosts.setdefault(leaf, []).extend(inside)
        domain = _domain(block.get("annotations") or block.get("labels"), where)
        if domain:
            self.blocks.setdefault(domain, []).extend(inside)

    def node(self, host: str, value: Mapping[str, Any]) -> None:
        attributes = value.get("attributes")
        nvlink = attributes.get("nvlink") if isinstance(attributes, dict) else None
        if isinstance(nvlink, str) and host not in self.blocks.setdefault(nvlink, []):
            self.blocks[nvlink].append(host)

    def expand(self, value: Any, where: str) -> list[str]:
        if value is None:
            return []
        names: list[str] = []
        for text in _names(value, where):
            expanded = expand_hosts(text, where, self.left)
            self.left -= len(expanded)
            names += expanded
        return names


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise BadInput(f"{where}: {str(value)[:60]!r} is not a list of names")
    return tuple(value)


def _list(model: Mapping[str, Any], key: str, name: str) -> list[Any]:
    value = model.get(key) or []
    if not isinstance(value, list):
        raise BadInput(f"{name}: '{key}' must be a list; got {type(value).__name__}")
    return value


def _entries(model: Mapping[str, Any], key: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and fields of each entry: a mapping by name, or (older models) a list with 'name' in each."""
    value = model.get(key) or {}
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(entry.get("name") if isinstance(entry, dict) else None, entry) for entry in value]
    else:
        pairs = [(None, value)]
    for entry_name, fields in pairs:
        if not isinstance(entry_name, str) or not isinstance(fields or {}, dict):
            entry = str(entry_name)[:40]
            raise BadInput(f"{name}: '{key}' has the entry {entry!r}; expected a name with a mapping")
        yield entry_name, fields or {}


def _domain(labels: Any, where: str) -> str | None:
    if labels is None:
        return None
    if not isinstance(labels, dict):
        raise BadInput(f"{where}: labels are {str(labels)[:40]!r}; expected a mapping")
    told = (value for key, value in labels.items() if str(key).endswith(_DOMAIN))
    return next((value for value in told if isinstance(value, str) and value), None)
