"""From files that other tools wrote to facts. One file here for each kind; adding one touches no other.

Every importer has `recognise(content: bytes, name: str) -> bool`, cheap and by content, and `read(content:
bytes, name: str) -> tuple[Facts, ...]`, which raises BadInput where the content is of its kind but broken
beyond use. Those that read what a tool prints of one host say `OF_ONE_HOST = True`: they are given the text
of one host at a time. Other files here are what importers share.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from planner.base import BadInput, modules_with, read_bytes
from probes.base.facts import Facts, HostFacts, noted
from probes.importers.paste import Part, parts_of, plain

WANTED = (
    "wanted are those of nvidia-smi topo -m (or -L, -q, nvlink -R), ibstat, ibnetdiscover, "
    "scontrol show topology, kubectl get nodes -o json, alltoall_perf, or an XML of NCCL_TOPO_DUMP_FILE; "
    "all that are read: docs/probing.md, Importing"
)
_NATURAL_END = re.compile(  # of a list, a legend, a table, an adapter; a prompt, a fence, a tag, a brace
    r"\(UUID: [\w-]{12,40}\)$|NIC\d{1,4}: [A-Za-z]\w+$|NVLinks$|\+$|-{8}$|={4}$|[Ll]ink.layer: \S+$"
    r"|\((?:Up|Down)\)$|n_gids_found=\d+$|[$#%`>}\]]$"
)
LARGEST_BYTES = 64 << 20  # a fabric of ten thousand hosts is some 10 MB of text


class Importer(Protocol):
    """What a module of this folder offers."""

    __name__: str

    def recognise(self, content: bytes, name: str) -> bool: ...

    def read(self, content: bytes, name: str) -> tuple[Facts, ...]: ...


def importers() -> tuple[Importer, ...]:
    """All of them, by name: the order in which they are tried."""
    found = modules_with("probes.importers", "recognise").values()
    return tuple(cast("Importer", module) for module in found)


def read_file(path: str | Path) -> tuple[Facts, ...]:
    """What a file says. BadInput where it cannot be read, is too large, or is of no kind we know."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    if size > LARGEST_BYTES:
        raise BadInput(
            f"{path}: {size:,} bytes is more than the {LARGEST_BYTES:,} we read; "
            "cut out the part that shows the machine"
        )
    return read_facts(read_bytes(path), str(path))


def read_facts(content: bytes, name: str) -> tuple[Facts, ...]:
    """What the content says, by every importer that recognises it. `name` is used in messages.

    One paste may hold several tools' output. Where one importer fails and another succeeds, the failure
    becomes a warning.
    """
    if not content.strip():
        raise BadInput(
            f"{name}: is empty; 'nvidia-smi nvlink -s' prints nothing on a machine without NVLink: "
            "give 'nvidia-smi topo -m' instead"
        )
    content = plain(content)
    facts: list[Facts] = []
    failures: list[BadInput] = []
    for importer, part in _readers(content, name):
        read, failure = _attempt(importer, part, name)
        facts += read
        failures += failure
    if facts:
        told = [*map(str, failures), *(_cut(content) if isinstance(facts[0], HostFacts) else ())]
        return (noted(facts[0], warnings=told), *facts[1:])
    if failures:
        raise failures[0]
    raise BadInput(f"{name}: {_impression(content)}, of no kind we know; {WANTED}")


def _readers(content: bytes, name: str) -> Iterator[tuple[Importer, Part]]:
    """The importers that read the content, host by host, then as a whole."""
    every = importers()
    of_host = [importer for importer in every if getattr(importer, "OF_ONE_HOST", False)]

    def known(text: bytes) -> bool:
        return any(importer.recognise(text, name) for importer in of_host)

    for part in parts_of(content, known):
        for importer in of_host:
            if importer.recognise(part.content, name):
                yield importer, part
    for importer in every:
        if importer not in of_host and importer.recognise(content, name):
            yield importer, Part((), content)


def _attempt(importer: Importer, part: Part, name: str) -> tuple[tuple[Facts, ...], tuple[BadInput, ...]]:
    try:
        return _of_hosts(importer.read(part.content, name), part.hosts), ()
    except BadInput as failure:
        return (), (failure,)


def _cut(content: bytes) -> list[str]:
    """That a text of a host stops in a line which no tool ends with."""
    last = content[-400:].decode(errors="replace").rpartition("\n")[2].strip()
    if not last or b"\0" in content[:4096] or _NATURAL_END.search(last):
        return []
    rest = "if it was cut there, what follows is missing: GPUs, adapters or hosts"
    return [f"the text ends without a line break in {last[-60:]!r}; {rest}"]


def _of_hosts(facts: tuple[Facts, ...], hosts: tuple[str, ...]) -> tuple[Facts, ...]:
    """The facts, with the name of the host that the paste names; for each where several answered alike."""
    if not hosts:
        return facts
    return tuple(
        replace(fact, host=host) if isinstance(fact, HostFacts) and fact.host is None else fact
        for host in hosts
        for fact in facts
    )


def short_names(modules: Iterable[Importer]) -> list[str]:
    return [module.__name__.rpartition(".")[2].replace("_", "-") for module in modules]


def _impression(content: bytes) -> str:
    if b"\0" in content[:4096]:
        return "a binary file"
    return f"text that begins {content[:4096].decode(errors='replace').strip()[:60]!r}"
