"""What both of Slurm's topology files describe: switches, the hosts on them, and blocks, each once."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from planner.base import BadInput
from probes.base.facts import FabricFacts
from probes.fabric.hostlist import LARGEST_LIST, expand_hosts
from probes.fabric.switch_tree import Tree, tree_facts

Table = dict[str, list[str]]


@dataclass
class Tables:
    """The tables while the file is read; `left` is how many names the file may still bring."""

    switches: Table = field(default_factory=dict)  # switch -> switches below
    nodes: Table = field(default_factory=dict)  # switch -> hosts
    blocks: Table = field(default_factory=dict)  # block -> hosts
    sizes: tuple[int, ...] = ()  # of blocks
    left: int = LARGEST_LIST

    def expand(self, text: str, where: str) -> tuple[str, ...]:
        names = expand_hosts(text, where, self.left)
        self.left -= len(names)
        return names

    def keep_own_hosts(self) -> None:
        """Of the hosts of a switch above others only those that are on none of these."""
        for switch in [one for one, below in self.switches.items() if below and self.nodes.get(one)]:
            inside = self._hosts_below(switch)
            self.nodes[switch] = [host for host in self.nodes[switch] if host not in inside]

    def _hosts_below(self, switch: str) -> set[str]:
        found: set[str] = set()
        seen = {switch}
        waiting = list(self.switches[switch])
        while waiting:
            below = waiting.pop()
            if below not in seen:
                seen.add(below)
                found.update(self.nodes.get(below, ()))
                waiting += self.switches.get(below, ())
        return found

    def facts(self, name: str, kind: str, warnings: list[str]) -> FabricFacts:
        facts = tree_facts(Tree(self.switches, self.nodes, self.blocks), name, kind)
        smallest = min(self.sizes, default=0)
        small = [block for block, hosts in self.blocks.items() if len(hosts) < smallest]
        if small:
            named = ", ".join(small[:10])
            warnings.append(
                f"{len(small)} blocks have fewer hosts than the smallest block size {smallest}: {named}"
            )
        return replace(facts, block_sizes=self.sizes, warnings=(*warnings, *facts.warnings))


def define(table: Table, name: str, below: Iterable[str], where: str) -> None:
    if name in table:
        raise BadInput(f"{where}: {name!r} is described a second time; one line for each switch or block")
    table[name] = list(below)


def block_sizes(values: object, where: str) -> tuple[int, ...]:
    texts = [str(value).strip() for value in values] if isinstance(values, list) else ["not a list"]
    if not all(text.isascii() and text.isdigit() and 0 < len(text) < 10 for text in texts):
        raise BadInput(f"{where}: block sizes {', '.join(texts)[:60]} must be whole numbers")
    return tuple(int(text) for text in texts)
