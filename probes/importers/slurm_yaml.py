"""Slurm's `topology.yaml` (25.05 and later): topologies, of which the cluster's default is taken."""

from collections.abc import Mapping
from typing import Any

from planner.base import BadInput, check_keys
from probes.base.facts import FabricFacts
from probes.importers.slurm_tables import Tables, block_sizes, define
from probes.importers.text import yaml_value

KINDS = ("tree", "block", "flat", "ring", "torus3d")
Types = dict[str, type | tuple[type, ...]]


def read_yaml(text: str, name: str) -> FabricFacts:
    topologies = yaml_value(text, name)
    if not isinstance(topologies, list) or not topologies:
        got = type(topologies).__name__
        raise BadInput(f"{name}: expected a list of topologies ('- topology: name'); got {got}")
    warnings: list[str] = []
    optional: Types = {"cluster_default": bool, **dict.fromkeys(KINDS, (dict, bool))}
    for entry in topologies:
        _known(entry, name, {"topology": str}, optional, warnings)
    default = next((entry for entry in topologies if entry.get("cluster_default")), None)
    chosen = default or topologies[0]
    if len(topologies) > 1:
        others = [f"{entry['topology']} ({_kind(entry)})" for entry in topologies if entry is not chosen]
        why = "the cluster's default" if default else "the first, none is marked cluster_default"
        taken = f"of {len(topologies)} topologies '{chosen['topology']}' is taken ({why})"
        warnings.append(f"{taken}; not taken: {', '.join(others)}")
    return _topology(chosen, name, warnings)


def _topology(entry: Mapping[str, Any], name: str, warnings: list[str]) -> FabricFacts:
    where = f"{name}: topology {entry['topology']!r}"
    tables = Tables()
    if isinstance(entry.get("tree"), dict):
        for switch in _rows(entry["tree"], "switches", where):
            _known(switch, where, {"switch": str}, {"children": str, "nodes": str}, warnings)
            for table, key in ((tables.switches, "children"), (tables.nodes, "nodes")):
                define(table, switch["switch"], tables.expand(switch.get(key, ""), where), where)
    elif isinstance(entry.get("block"), dict):
        tables.sizes = block_sizes(entry["block"].get("block_sizes", []), where)
        for block in _rows(entry["block"], "blocks", where):
            _known(block, where, {"block": str}, {"nodes": str}, warnings)
            define(tables.blocks, block["block"], tables.expand(block.get("nodes", ""), where), where)
    else:
        kind = _kind(entry)
        untold = f"the {kind} topology {entry['topology']!r} tells no leaves, spines or blocks"
        return FabricFacts(name, f"slurm-{kind}", "imported", unknown=(untold,), warnings=tuple(warnings))
    return tables.facts(name, "slurm-tree" if "tree" in entry else "slurm-block", warnings)


def _kind(entry: Mapping[str, Any]) -> str:
    return next((kind for kind in KINDS if kind in entry), "unknown")


def _known(entry: Any, where: str, required: Types, optional: Types, warnings: list[str]) -> None:
    """Checks what we know of; a key of a newer Slurm is passed over and said."""
    known = entry
    if isinstance(entry, dict):
        known = {key: value for key, value in entry.items() if key in required or key in optional}
    check_keys(known, where, required, optional)
    strange = [key for key in entry if key not in known]
    warnings += [f"{where}: the key {str(key)[:40]!r} is not known: passed over" for key in strange]


def _rows(value: Mapping[str, Any], key: str, where: str) -> list[Any]:
    rows = value.get(key)
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{where}: '{key}' must be a list with an entry for each; got {type(rows).__name__}")
    return rows
