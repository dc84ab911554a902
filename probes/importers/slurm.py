"""Slurm's `topology.conf` (tree and block) and `topology.yaml` (25.05 and later): which hosts are near each other, never how fast."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.base import BadInput, check_keys, parse_yaml
from probes.base.facts import FabricFacts
from probes.fabric.hostlist import LARGEST_LIST, expand_hosts
from probes.fabric.switch_tree import tree_facts

LARGEST_YAML_BYTES = 4 << 20
_CONF = re.compile(rb"^[ \t]{0,40}(?:SwitchName|BlockName)[ \t]{0,9}=", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(rb"^[ \t]{0,40}(?:-[ \t]{1,9})?topology:[ \t]{1,40}\S", re.MULTILINE)
_KINDS = ("tree", "block", "flat", "ring", "torus3d")
_YAML_KIND = re.compile(rb"^[ \t]{1,40}(?:-[ \t]{1,9})?(?:tree|block|flat|ring|torus3d):", re.MULTILINE)
_LIST = re.compile(rb"^-[ \t]", re.MULTILINE)


def recognise(content: bytes, name: str) -> bool:
    """Whether it is one of the two files."""
    return bool(_CONF.search(content)) or all(
        pattern.search(content) for pattern in (_YAML, _YAML_KIND, _LIST)
    )


def read(content: bytes, name: str) -> tuple[FabricFacts, ...]:
    """One value: of topology.yaml the cluster's default topology, the others named in a warning."""
    text = _decode(content, name)
    return (_read_conf(text, name),) if _CONF.search(content) else (_read_yaml(text, name),)


def _read_conf(text: str, name: str) -> FabricFacts:
    tables: dict[str, dict[str, list[str]]] = {"switches": {}, "nodes": {}, "blocks": {}}
    sizes: tuple[int, ...] = ()
    warnings: list[str] = []
    strange: dict[str, int] = {}  # unknown keys, and a line that has each
    left = LARGEST_LIST
    for number, line in _lines(text):
        where = f"{name}: line {number}"
        pairs = _pairs(line, where)
        if "include" in pairs:
            raise BadInput(f"{where}: 'Include' is not followed; paste the included file in its place")
        if "blocksizes" in pairs:
            sizes = _sizes(pairs["blocksizes"].split(","), where)
        here = {key: expand_hosts(pairs[key], where, left) for key in ("switches", "nodes") if key in pairs}
        left -= sum(map(len, here.values()))
        warnings += (
            [f"line {number}: {pairs['nodes']!r} names no hosts"]
            if pairs.get("nodes", "").upper() == "ALL"
            else []
        )
        strange.update(dict.fromkeys((key for key in pairs if key not in _KEYS), number))
        for switch in expand_hosts(pairs.get("switchname", ""), where, left):
            _define(tables["switches"], switch, here.get("switches", ()), where)
            _define(tables["nodes"], switch, here.get("nodes", ()), where)
        for block in expand_hosts(pairs.get("blockname", ""), where, left):
            _define(tables["blocks"], block, here.get("nodes", ()), where)
        if here and not ({"switchname", "blockname"} & set(pairs)):
            raise BadInput(f"{where}: hosts or switches without 'SwitchName=' or 'BlockName=' before them")
    if strange:
        warnings.append(
            f"keys that are not known are passed over: {', '.join(f'{key[:40]!r} (line {line})' for key, line in list(strange.items())[:10])}"
        )
    kind = "slurm-block" if tables["blocks"] else "slurm-tree"
    return _facts(tables, sizes, name, kind, warnings)


_KEYS = ("switchname", "blockname", "switches", "nodes", "linkspeed", "blocksizes")


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines with something in them, numbered, without comments; a backslash at the end joins the next."""
    joined: list[tuple[int, str]] = []
    pending = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#")[0].strip()
        pending += bare.removesuffix("\\") + " "
        if not bare.endswith("\\"):
            joined += [(number, pending.strip())] if pending.strip() else []
            pending = ""
    return [*joined, *([(len(joined), pending.strip())] if pending.strip() else [])]


def _pairs(line: str, where: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in "=".join(part.strip() for part in line.split("=")).split():
        key, equals, value = word.partition("=")
        if key.lower() == "include":
            return {"include": value}
        if not equals or not value:
            raise BadInput(f"{where}: {word[:60]!r} is not 'Key=Value'; the line may be cut short")
        if pairs.setdefault(key.lower(), value) != value:
            raise BadInput(f"{where}: the key {key!r} appears twice")
    return pairs


def _define(table: dict[str, list[str]], name: str, below: tuple[str, ...], where: str) -> None:
    if name in table:
        raise BadInput(f"{where}: {name!r} is described a second time; one line for each switch or block")
    table[name] = list(below)


def _facts(
    tables: Mapping[str, Mapping[str, list[str]]],
    sizes: tuple[int, ...],
    name: str,
    kind: str,
    warnings: list[str],
) -> FabricFacts:
    facts = tree_facts(tables["switches"], tables["nodes"], tables["blocks"], name, kind)
    if sizes:
        small = [block for block, hosts in tables["blocks"].items() if len(hosts) < min(sizes)]
        if small:
            warnings.append(
                f"{len(small)} blocks have fewer hosts than the smallest block size {min(sizes)}: {', '.join(small[:10])}"
            )
    return replace(facts, block_sizes=sizes, warnings=(*warnings, *facts.warnings))


def _read_yaml(text: str, name: str) -> FabricFacts:
    if len(text) > LARGEST_YAML_BYTES:
        raise BadInput(
            f"{name}: {len(text):,} characters of YAML are more than the {LARGEST_YAML_BYTES:,} we read"
        )
    topologies = parse_yaml(text, name)
    if not isinstance(topologies, list) or not topologies:
        raise BadInput(
            f"{name}: expected a list of topologies ('- topology: name'); got {type(topologies).__name__}"
        )
    warnings: list[str] = []
    for entry in topologies:
        _known(
            entry,
            name,
            {"topology": str},
            {"cluster_default": bool, **dict.fromkeys(_KINDS, (dict, bool))},
            warnings,
        )
    chosen = next((entry for entry in topologies if entry.get("cluster_default")), topologies[0])
    if len(topologies) > 1:
        others = ", ".join(
            f"{entry['topology']} ({_kind(entry)})" for entry in topologies if entry is not chosen
        )
        why = (
            "the cluster's default"
            if chosen.get("cluster_default")
            else "the first, none is marked cluster_default"
        )
        warnings.append(
            f"of {len(topologies)} topologies '{chosen['topology']}' is taken ({why}); not taken: {others}"
        )
    return _topology(chosen, f"{name}: topology {chosen['topology']!r}", name, warnings)


def _topology(entry: Mapping[str, Any], where: str, name: str, warnings: list[str]) -> FabricFacts:
    tables: dict[str, dict[str, list[str]]] = {"switches": {}, "nodes": {}, "blocks": {}}
    sizes: tuple[int, ...] = ()
    left = LARGEST_LIST
    if isinstance(entry.get("tree"), dict):
        for switch in _rows(entry["tree"], "switches", where):
            _known(switch, where, {"switch": str}, {"children": str, "nodes": str}, warnings)
            for table, key in (("switches", "children"), ("nodes", "nodes")):
                below = expand_hosts(switch.get(key, ""), where, left)
                left -= len(below)
                _define(tables[table], switch["switch"], below, where)
    elif isinstance(entry.get("block"), dict):
        sizes = _sizes(entry["block"].get("block_sizes", []), where)
        for block in _rows(entry["block"], "blocks", where):
            _known(block, where, {"block": str}, {"nodes": str}, warnings)
            below = expand_hosts(block.get("nodes", ""), where, left)
            left -= len(below)
            _define(tables["blocks"], block["block"], below, where)
    else:
        kind = _kind(entry)
        return FabricFacts(
            name,
            f"slurm-{kind}",
            "imported",
            unknown=(f"the {kind} topology {entry['topology']!r} tells no leaves, spines or blocks",),
            warnings=tuple(warnings),
        )
    return _facts(tables, sizes, name, "slurm-tree" if "tree" in entry else "slurm-block", warnings)


def _kind(entry: Mapping[str, Any]) -> str:
    return next((kind for kind in _KINDS if kind in entry), "unknown")


def _known(
    entry: Any,
    where: str,
    required: dict[str, type],
    optional: dict[str, type | tuple[type, ...]],
    warnings: list[str],
) -> None:
    """Checks what we know of; a key of a newer Slurm is passed over and said."""
    known = (
        {key: value for key, value in entry.items() if key in required or key in optional}
        if isinstance(entry, dict)
        else entry
    )
    check_keys(known, where, dict[str, type | tuple[type, ...]](required), optional)
    warnings += [
        f"{where}: the key {str(key)[:40]!r} is not known: passed over" for key in entry if key not in known
    ]


def _rows(value: Mapping[str, Any], key: str, where: str) -> list[Any]:
    rows = value.get(key)
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{where}: '{key}' must be a list with an entry for each; got {type(rows).__name__}")
    return rows


def _sizes(values: object, where: str) -> tuple[int, ...]:
    texts = [str(value).strip() for value in values] if isinstance(values, list) else ["not a list"]
    if not all(text.isascii() and text.isdigit() and 0 < len(text) < 10 for text in texts):
        raise BadInput(f"{where}: block sizes {', '.join(texts)[:60]} must be whole numbers")
    return tuple(int(text) for text in texts)


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: byte {error.start} is not UTF-8 text") from error
