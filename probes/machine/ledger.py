"""What is kept while facts of one host are merged: who told each value, and where sources differ."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from planner.base import Evidence, human_bandwidth
from probes.base.facts import HostFacts
from probes.machine.gpu_names import key_of, links_of_gpu

Places = list[dict[int, int]]  # for each source: its own index -> ours
EvidenceMap = dict[tuple[str, int, str], Evidence]  # by 'gpu', 'nic' or 'host', index, and field
_WORDS = {
    "rate_bytes_per_s": "rate",
    "nvlink_bytes_per_s": "NVLink rate",
    "pcie_bytes_per_s": "PCIe rate",
    "nvlinks": "number of active NVLinks",
}


@dataclass
class Ledger:
    """`where` begins every sentence: it names the host."""

    where: str
    warnings: list[str]
    evidence: EvidenceMap = field(default_factory=dict)

    def warn(self, sentence: str) -> None:
        self.warnings.append(self.where + sentence)

    def credit(self, part: str, place: int, name: str, fact: HostFacts) -> None:
        self.evidence[part, place, name] = Evidence(fact.evidence, fact.source)

    def differ(self, what: str, kept: object, kept_source: str, other: object, other_source: str) -> None:
        """Two sources differ: a sentence with both values."""
        self.warn(f"{what} is {kept} in {kept_source} and {other} in {other_source}; {kept} is used")

    def fill(self, known: Any, more: Any, fact: HostFacts, part: str, place: int) -> Any:
        """`known`, a GPU or NIC, with what it lacks from `more` of that fact, faults of both.

        Values that differ are told; those of `known` stay.
        """
        changes: dict[str, Any] = {}
        for name in (one.name for one in fields(known) if one.name not in {"index", "faults"}):
            mine, theirs = getattr(known, name), getattr(more, name)
            if theirs is None or (part == "nic" and name == "name"):
                continue
            if mine is None:
                changes[name] = theirs
                self.credit(part, place, name, fact)
            elif not _agree(mine, theirs, name):
                kept = self.evidence[part, place, name].source
                label = f"{part.upper()} {known.name if part == 'nic' else place}: {_WORDS.get(name, name)}"
                self.differ(label, _text(mine, name), kept, _text(theirs, name), fact.source)
        return replace(known, **changes, faults=tuple(dict.fromkeys((*known.faults, *more.faults))))


def _agree(one: object, other: object, name: str) -> bool:
    if name in {"card", "guid", "device", "model", "pci_path"}:
        return True  # written differently by every tool
    if name == "name" and isinstance(one, str) and isinstance(other, str):
        models = links_of_gpu(one), links_of_gpu(other)
        return key_of(one) == key_of(other) or (models[0] is not None and models[0] is models[1])
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 0.02 * max(one, other)
    return one == other


def _text(value: object, name: str) -> str:
    return human_bandwidth(value) if isinstance(value, float) and name.endswith("bytes_per_s") else str(value)
