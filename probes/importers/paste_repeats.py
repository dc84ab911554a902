"""Outputs of several hosts, one after the other without a name between: told apart by the UUIDs of GPUs."""

import re
from collections.abc import Iterator
from itertools import pairwise

_LISTED = re.compile(r"[ \t>]{0,16}GPU (\d{1,3}): [^\n]{1,80} \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)\s*")
_MATRIX = re.compile(r"[ \t>#*`]{0,64}GPU0\s+(?:GPU1\b|(?:\S{1,20}\s+){0,99}CPU\s{1,16}Affinity).*")
_QUERY = re.compile(r"[ \t>=]{0,64}NVSMI LOG[ =]{0,64}")
_ADDRESS = re.compile(r"\s{0,16}GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")
_QUERIED = re.compile(r"\s{0,16}GPU UUID\s{0,64}: (GPU-[0-9a-fA-F-]{8,40})\s*")
_HEADER = re.compile(r"(?:[a-z_.]{2,40}(?: \[\w{1,8}\])?, ?){1,40}[a-z_.]{2,40}(?: \[\w{1,8}\])?\s*")


def split_repeats(text: str) -> list[str]:
    """The text, cut where another host's outputs begin.

    That is where the GPU of an index (`nvidia-smi -L`) or a PCI address (`-q`) has another UUID than before,
    or the header of a CSV comes again; the cut is before the first output of a kind that the host had.
    """
    lines = text.split("\n")
    cuts = [0, *_cuts(lines), len(lines)]
    parts = ["\n".join(lines[start:end]) for start, end in pairwise(cuts) if start < end]
    return [*(f"{part}\n" for part in parts[:-1]), *parts[-1:]]


def _cuts(lines: list[str]) -> Iterator[int]:
    known: dict[str, str] = {}  # index or PCI address of a GPU -> its UUID
    kinds: set[str] = set()
    again: int | None = None  # where a kind came again that this host had
    last = address = ""
    for number, line in enumerate(lines):
        if at := _ADDRESS.fullmatch(line):
            address = at[1]
        kind = _kind(line)
        if not kind:
            continue
        repeated = kind != last and kind in kinds
        again = number if repeated and again is None else again
        last = kind
        listed = _LISTED.fullmatch(line) or _QUERIED.fullmatch(line)
        key, uuid = (
            ("", "")
            if listed is None
            else (listed[1] if listed.re is _LISTED else address, listed[listed.re.groups])
        )
        if (kind.startswith("header ") and repeated) or (key and known.get(key, uuid) != uuid):
            yield number if again is None else again
            known, kinds, again = {}, set(), None
        elif key in known:
            again = None  # the same host once more
        if key:
            known[key] = uuid
        kinds.add(kind)


def _kind(line: str) -> str:
    if line.lstrip(" \t>").startswith("GPU "):
        return "list" if _LISTED.fullmatch(line) else "queried" if _QUERIED.fullmatch(line) else ""
    if _QUERY.fullmatch(line):
        return "query"
    if _HEADER.fullmatch(line) and ("name" in line or "uuid" in line):
        return "header " + line.strip()
    return "matrix" if "GPU0" in line[:200] and _MATRIX.fullmatch(line) else ""
