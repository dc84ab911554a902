"""Slurm's `topology.conf`: a line of 'Key=Value' words for each switch or block.

`scontrol show topology` prints the same with more keys, and names all hosts below a switch, not only those on
it.
"""

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.fabric.hostlist import expand_hosts
from probes.importers.paste_prompts import prompt_of
from probes.importers.slurm_tables import Tables, block_sizes, define

_KEYS = ("switchname", "blockname", "switches", "nodes", "linkspeed", "blocksizes")
_SHOWN = ("level", "blockindex", "blocksize")  # by `scontrol show topology`, of what the others say
Pairs = dict[str, str]


def read_conf(text: str, name: str) -> FabricFacts:
    tables = Tables()
    warnings: list[str] = []
    strange: dict[str, int] = {}  # unknown keys, and a line that has each
    for number, line in _lines(text):
        where = f"{name}: line {number}"
        pairs = _pairs(line, where)
        if "include" in pairs:
            raise BadInput(f"{where}: 'Include' is not followed; paste the included file in its place")
        if pairs.get("nodes", "").upper() == "ALL":
            warnings.append(f"line {number}: {pairs['nodes']!r} names no hosts")
        if "aggregatedblock" in pairs:
            continue  # blocks that are described beside it, together
        strange.update(dict.fromkeys((key for key in pairs if key not in (*_KEYS, *_SHOWN)), number))
        _take(tables, pairs, where)
    if strange:
        keys = ", ".join(f"{key[:40]!r} (line {line})" for key, line in list(strange.items())[:10])
        warnings.append(f"keys that are not known are passed over: {keys}")
    tables.keep_own_hosts()
    return tables.facts(name, "slurm-block" if tables.blocks else "slurm-tree", warnings)


def _take(tables: Tables, pairs: Pairs, where: str) -> None:
    """Take the switches and blocks of one line in."""
    if "blocksizes" in pairs:
        tables.sizes = block_sizes(pairs["blocksizes"].split(","), where)
    left = tables.left
    here = {key: expand_hosts(pairs[key], where, left) for key in ("switches", "nodes") if key in pairs}
    tables.left -= sum(map(len, here.values()))
    switches, nodes = here.get("switches", ()), here.get("nodes", ())
    for switch in expand_hosts(pairs.get("switchname", ""), where, tables.left):
        define(tables.switches, switch, switches, where)
        define(tables.nodes, switch, nodes, where)
    for block in expand_hosts(pairs.get("blockname", ""), where, tables.left):
        define(tables.blocks, block, nodes, where)
    if here and not ({"switchname", "blockname"} & set(pairs)):
        raise BadInput(f"{where}: hosts or switches without 'SwitchName=' or 'BlockName=' before them")


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines with something in them, numbered, without comments; a backslash at the end joins the next."""
    joined: list[tuple[int, str]] = []
    pending = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = "" if prompt_of(line) else line.split("#")[0].strip()
        pending += bare.removesuffix("\\") + " "
        if not bare.endswith("\\"):
            joined += [(number, pending.strip())] if pending.strip() else []
            pending = ""
    return [*joined, *([(len(joined), pending.strip())] if pending.strip() else [])]


def _pairs(line: str, where: str) -> Pairs:
    pairs: Pairs = {}
    for word in "=".join(part.strip() for part in line.split("=")).split():
        key, equals, value = word.partition("=")
        if key.lower() == "include":
            return {"include": value}
        if not equals or not value:
            raise BadInput(f"{where}: {word[:60]!r} is not 'Key=Value'; the line may be cut short")
        if pairs.setdefault(key.lower(), value) != value:
            raise BadInput(f"{where}: the key {key!r} appears twice")
    return pairs
