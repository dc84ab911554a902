"""What people paste, as the tools wrote it: plain text, and the part of each host apart.

A paste comes with ANSI colours, CRLF, a byte order mark, UTF-16 of a Windows shell, prompts, and the output
of several hosts: behind 'host: ' (pdsh, clush, srun -l, kubectl logs), below a banner (dshbak, ansible,
'=== node1 ==='), below a prompt that names the host, or one after the other.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from planner.base import BadInput
from probes.fabric.hostlist import expand_hosts
from probes.fabric.naming import natural
from probes.importers.paste_prompts import prompt_of
from probes.importers.paste_repeats import split_repeats

LARGEST_SPLIT = 8 << 20
MOST_PARTS = 4096
_BINARY = (b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ", b"BZh")
_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-9;:?<=>]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>])"
)
_CONTROL = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]"
)  # would reach a terminal, or a file
_INVISIBLE = (("\ufeff", ""), ("\u200b", ""), ("\u00a0", " "))
_QUOTE, _QUOTED = re.compile(rb"^[ \t]{0,8}(?:>[ \t]?){1,8}"), 0.8
_LABELLED = re.compile(
    r"(?:\[(?P<rank>\d{1,6},\d{1,6})\]<std(?:out|err)>:[ ]?|\[(?P<in>[\w./,-]{1,128})\]:?[ \t]"
    r"|(?P<out>[A-Za-z0-9][\w.-]{0,127}):(?:[ \t]|$))(?P<text>.*)"
)
_RULE = re.compile(r"-{4,}\s*")
_UNDER_RULES = re.compile(r"\s*([A-Za-z0-9][\w.,\[\]-]{0,200})(?: \(\d{1,6}\))?\s*")
_ANSIBLE = re.compile(r"([A-Za-z0-9][\w.-]{0,127}) \| (?:CHANGED|SUCCESS|FAILED)\b.{0,40}>>\s*")
_BANNER = re.compile(
    r"[=#*>-]{2,}\s{0,4}(?:(?:host(?:name)?|node)\s{0,4}:?\s{0,4})?"
    r"([A-Za-z][\w.-]{0,127})\s{0,4}[=#*<:-]{2,}\s*"
)
_NAMED = re.compile(
    r"[#>*\s]{0,16}(?:host(?:name)?|node)\s{0,8}[:=]\s{0,8}([A-Za-z][\w.-]{0,127})\s*", re.IGNORECASE
)
_FILE = re.compile(r"==> (.{1,400}) <==\s*")
_NO_HOST = re.compile(r"(?:GPU|NIC)\d{0,4}|\d{1,6}|[0-9a-f]{12}|Legend")


@dataclass(frozen=True)
class Part:
    """The lines of one host. `hosts` are its names: none where nobody says, several that answered alike."""

    hosts: tuple[str, ...]
    content: bytes


@dataclass
class _Lines:
    """The lines by who printed them, in the order in which they come up."""

    of: dict[str, list[str]] = field(default_factory=dict)
    host: str = ""

    def add(self, line: str, label: str | None = None) -> None:
        self.of.setdefault(self.host if label is None else label, []).append(line)


def plain(content: bytes) -> bytes:
    """The text in UTF-8 without escapes, control characters, byte order mark and carriage returns.

    Binary stays as it is.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") and len(content) > 3:
        content = content.decode("utf-16", "replace").encode()
    elif b"\0" in content[:4096] or content.startswith(_BINARY):
        return content
    if b"\x1b" in content:
        content = _ESCAPE.sub(b"", content)
    if b"\n>" in content and len(content) <= LARGEST_SPLIT:
        content = _unquoted(content)
    for seen, instead in _INVISIBLE:
        content = content.replace(seen.encode(), instead.encode())
    return _CONTROL.sub(b"", content.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


def _unquoted(content: bytes) -> bytes:
    """Without the marks of a quotation, as mail and forums make them of every line."""
    lines = content.split(b"\n")
    said = [line for line in lines if line.strip()]
    if sum(line.lstrip().startswith(b">") for line in said) < _QUOTED * len(said):
        return content
    return b"\n".join(_QUOTE.sub(b"", line, count=1) for line in lines)


def parts_of(content: bytes, known: Callable[[bytes], bool]) -> tuple[Part, ...]:
    """The hosts' parts of a plain text; `known` says whether some importer of one host reads a text.

    A text without any mark of a host is one part without a name.
    """
    if len(content) > LARGEST_SPLIT:
        return (Part((), content),)
    text = content.decode("utf-8", "replace")
    open_end = text.rpartition("\n")[2]  # a last line that may have been cut
    labels = _labels_of(text, known)
    lines = _by_host(text, labels)
    found: list[Part] = []
    order = [label for label in lines.of if label not in labels]
    for label in (*order, *sorted(labels, key=natural)):  # lines behind a name come in any order
        part = "\n".join(lines.of[label])
        if not open_end or not lines.of[label][-1] or not open_end.endswith(lines.of[label][-1]):
            part = part.removesuffix("\n") + "\n"
        if known(part.encode()):
            found += [Part(_names(label), one.encode()) for one in split_repeats(part)]
    return tuple(found[:MOST_PARTS]) or (Part((), content),)


def _labels_of(text: str, known: Callable[[bytes], bool]) -> frozenset[str]:
    """The words before a colon behind which a tool's output stands."""
    behind: dict[str, list[str]] = {}
    for line in text.split("\n"):
        if match := _LABELLED.fullmatch(line):
            behind.setdefault(_label(match), []).append(match["text"])
    if len(behind) > MOST_PARTS:
        return frozenset()
    return frozenset(label for label, lines in behind.items() if known("\n".join(lines).encode()))


def _label(match: re.Match[str]) -> str:
    return match["rank"] or match["in"] or match["out"]


def _by_host(text: str, labels: frozenset[str]) -> _Lines:
    lines = _Lines()
    rows = text.split("\n")
    number = asked = 0
    while number < len(rows):
        line = rows[number]
        match = _LABELLED.fullmatch(line) if labels else None
        if match and _label(match) in labels:
            lines.add(match["text"], _label(match))
        elif prompt := prompt_of(line):
            lines.host = lines.host if prompt.host is None else prompt.host
            asked = number + 1 if prompt.asks_name else 0
        elif host := _banner(rows, number):
            lines.host = host
            number += 2 if _RULE.fullmatch(line) else 0
        elif asked and number == asked and _UNDER_RULES.fullmatch(line):
            lines.host = line.strip()
        else:
            lines.add(line)
        number += 1
    return lines


def _banner(rows: list[str], number: int) -> str | None:
    """The host that a line, or three of them, announce."""
    line = rows[number]
    if _RULE.fullmatch(line) and number + 2 < len(rows) and _RULE.fullmatch(rows[number + 2]):
        named = _UNDER_RULES.fullmatch(rows[number + 1])
        return named[1] if named else None
    if ansible := _ANSIBLE.fullmatch(line):
        return ansible[1]
    if file := _FILE.fullmatch(line):
        return f"\0{file[1]}"
    banner = _BANNER.fullmatch(line)
    if banner and any(letter.isdigit() for letter in banner[1]):
        return banner[1]
    named = _NAMED.fullmatch(line)
    return named[1] if named else None


def _names(label: str) -> tuple[str, ...]:
    """The names of hosts in a label: none of a task's number or a container's id, several of 'node[1-4]'."""
    if not label or label.startswith("\0"):
        return ()
    try:
        pod = re.fullmatch(r"pod/([^/]{1,253})/[^/]{1,253}", label)  # of `kubectl logs --prefix`
        names = expand_hosts(pod[1] if pod else label.rpartition("/")[2], "label", MOST_PARTS)
    except BadInput:
        names = (label,)
    return tuple(name for name in names if not _NO_HOST.fullmatch(name))
