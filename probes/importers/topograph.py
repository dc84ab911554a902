"""NVIDIA topograph: its cluster models (YAML: switches, blocks, nodes) and the JSON its graph engine writes (instances with their switches, closest first)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.base import BadInput, parse_json, parse_yaml
from probes.base.facts import FabricFacts
from probes.fabric.hostlist import LARGEST_LIST, expand_hosts
from probes.fabric.switch_chains import chain_facts
from probes.fabric.switch_tree import tree_facts

LARGEST_YAML_BYTES = 4 << 20
_YAML = re.compile(rb"^switches:[ \t]{0,9}\r?$", re.MULTILINE)
_YAML_HOSTS = re.compile(rb"^(?:blocks|nodes|capacity_blocks):|^[ \t]{1,20}nodes:", re.MULTILINE)
_DOMAIN = (
    "/domain",
    "/level-0",
    "/accelerator",
)  # how the label of an NVLink domain ends, in the versions seen


def recognise(content: bytes, name: str) -> bool:
    """Whether it is a model or a graph."""
    if content.lstrip()[:1] == b"{":
        return b'"instances"' in content and b'"network_layers"' in content
    return bool(_YAML.search(content) and _YAML_HOSTS.search(content))


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """One value; its blocks are the NVLink domains (accelerator domains) that the source names."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: byte {error.start} is not UTF-8 text") from error
    if text.lstrip()[:1] == "{":
        return (_read_graph(text, name),)
    if len(text) > LARGEST_YAML_BYTES:
        raise BadInput(
            f"{name}: {len(text):,} characters of YAML are more than the {LARGEST_YAML_BYTES:,} we read"
        )
    return (_read_model(parse_yaml(text, name), name),)


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
    children: dict[str, list[str]] = {}
    hosts: dict[str, list[str]] = {}
    groups: dict[str, tuple[str, list[str]]] = {}  # capacity block: its domain and hosts
    blocks: dict[str, list[str]] = {}
    budget = _Budget()
    for block, value in _entries(model, "capacity_blocks", name):
        inside = budget.expand(value.get("nodes"), f"{name}: capacity block {block}")
        nvlink = value.get("nvlink")
        groups[block] = (nvlink if isinstance(nvlink, str) else "", inside)
        if groups[block][0]:
            blocks.setdefault(groups[block][0], []).extend(inside)
    for switch, value in _entries(model, "switches", name):
        where = f"{name}: switch {switch}"
        children[switch] = budget.expand(value.get("switches"), where)
        hosts[switch] = budget.expand(value.get("nodes"), where)
        for group in budget.expand(value.get("capacity_blocks"), where):
            hosts[switch] += groups.get(group, ("", []))[1]
    for number, block in enumerate(_list(model, "blocks", name)):
        where = f"{name}: block {number}"
        leaf = block.get("switch") if isinstance(block, dict) else None
        if not isinstance(leaf, str):
            raise BadInput(f"{where}: 'switch' is {leaf!r}; expected the name of the leaf it hangs on")
        inside = budget.expand(block.get("nodes"), where)
        hosts.setdefault(leaf, []).extend(inside)
        domain = _domain(block.get("annotations") or block.get("labels"), where)
        if domain:
            blocks.setdefault(domain, []).extend(inside)
    for host, value in _entries(model, "nodes", name):
        attributes = value.get("attributes")
        nvlink = attributes.get("nvlink") if isinstance(attributes, dict) else None
        if isinstance(nvlink, str) and host not in blocks.setdefault(nvlink, []):
            blocks[nvlink].append(host)
    if not any(hosts.values()):
        raise BadInput(f"{name}: no switch has hosts; 'blocks' or 'nodes' name them")
    return tree_facts(
        children, {leaf: below for leaf, below in hosts.items() if below}, blocks, name, "topograph-model"
    )


class _Budget:
    """Expands host lists until there are too many names in one file."""

    def __init__(self) -> None:
        self.left = LARGEST_LIST

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
    pairs = (
        [(entry.get("name"), entry) if isinstance(entry, dict) else (None, entry) for entry in value]
        if isinstance(value, list)
        else None
    )
    for entry_name, fields in (
        pairs if pairs is not None else (value.items() if isinstance(value, dict) else [(None, value)])
    ):
        if not isinstance(entry_name, str) or not isinstance(fields or {}, dict):
            raise BadInput(
                f"{name}: '{key}' has the entry {str(entry_name)[:40]!r}; expected a name with a mapping"
            )
        yield entry_name, fields or {}


def _domain(labels: Any, where: str) -> str | None:
    if labels is None:
        return None
    if not isinstance(labels, dict):
        raise BadInput(f"{where}: labels are {str(labels)[:40]!r}; expected a mapping")
    return next(
        (
            value
            for key, value in labels.items()
            if str(key).endswith(_DOMAIN) and isinstance(value, str) and value
        ),
        None,
    )
