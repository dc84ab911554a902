"""Which facts that name no host belong together all the same: those of one file, and of files named alike."""

import re
from collections.abc import Sequence

from probes.base.facts import HostFacts

_WORDS = re.compile(r"[^/\\_.\s-]+")


def parts_of(facts: Sequence[HostFacts]) -> list[list[HostFacts]]:
    """The facts in parts, in the order given; in a part each is of another kind."""
    labels = _labels(facts)
    parts: list[list[HostFacts]] = []
    of_label: dict[str, list[HostFacts]] = {}
    for fact in facts:
        label = labels.get(fact.source, fact.source)
        part = of_label.get(label)
        if part is not None and fact in part:
            continue  # the same file given twice
        if part is None or any(other.kind == fact.kind for other in part):
            part = of_label[label] = []
            parts.append(part)
        part.append(fact)
    return parts


def _labels(facts: Sequence[HostFacts]) -> dict[str, str]:
    """The word of each file's name that tells it from others of its kind: hostA of hostA_topo.txt.

    None where the names of one kind do not differ in words, as of run1.txt twice, or where the files of the
    other kinds do not have the same words.

    >>> told = [HostFacts(name, kind, "imported") for kind in ("topo", "ibstat") for name in (
    ...     f"a_{kind}.txt", f"b_{kind}.txt")]
    >>> sorted(_labels(told).values())
    ['a', 'a', 'b', 'b']
    """
    of_kind: dict[str, list[str]] = {}
    for fact in facts:
        if fact.source not in of_kind.setdefault(fact.kind, []):
            of_kind[fact.kind].append(fact.source)
    found: dict[str, str] = {}
    for sources in of_kind.values():
        words = [_WORDS.findall(source) for source in sources]
        shared = set.intersection(*map(set, words)) if words else set()
        own = [" ".join(word for word in mine if word not in shared) for mine in words]
        if len(sources) > 1 and all(own) and len(set(own)) == len(own):
            found |= dict(zip(sources, own, strict=True))
    counted = list(found.values())
    alone = {label for label in counted if counted.count(label) == 1}
    return {source: label for source, label in found.items() if label not in alone}
