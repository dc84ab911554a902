"""A `nvidia-smi topo -m` paste: its tables and its NIC legend, as they stand.

What pastes suffer is undone here: ANSI escapes, quoting, indentation, log prefixes, tabs turned to spaces,
names and cells glued together. A table ends at its legend, at the next header, or where a row name comes
again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from probes.importers.topo_line import Table, header_of, row_of, without_log_prefix

LINK_WORDS = "X, NV#, PIX, PXB, PHB, NODE, SYS"
LARGEST_TEXT = 8 << 20
_LONGEST_LINE = 16_384  # 400 columns of 40 characters
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]|[\r\x00]")
_ESCAPE_BYTES = re.compile(rb"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_QUOTE = re.compile(r"[\s>*#`]{0,64}")
_LEGEND = re.compile(r"(X|SYS|NODE|PHB|PXB|PIX|NV#|SOC)[ \t]{1,8}= ")
_LEFT_OUT = re.compile(r"(\d{1,5}) NICs found in the topology, only displaying (\d{1,5}) in the matrix")
_NIC_LEGEND = re.compile(r"(NIC\d{1,4}):[ \t]{1,16}([A-Za-z][\w.-]{1,40})\s*")
_START = re.compile(
    rb"(?:GPU|NIC)\d{1,4}[ \t]{1,64}(?:X|NV\d{1,2}|SYS|NODE|PHB|PXB|PIX|SOC)\b"
    rb"|GPU0[ \t]{0,64}(?:GPU1\b|CPU[ \t]{1,16}Affinity)"
)


@dataclass(frozen=True)
class Paste:
    """All tables of a text, and the NIC legend (NIC0 -> mlx5_0).

    `cut_legend` is the entry that is not followed by another one or an empty line.
    """

    tables: tuple[Table, ...]
    devices: dict[str, str]
    cut_legend: str | None
    legend: frozenset[str] = frozenset()  # the link words that it explains
    nics_left_out: tuple[int, int] | None = None  # found and shown, where the driver says it leaves some out
    text: str = ""


def looks_like_topo(content: bytes) -> bool:
    return _START.search(_ESCAPE_BYTES.sub(b"", content[:LARGEST_TEXT])) is not None


def read_paste(content: bytes) -> Paste:
    """The tables of a text of at most LARGEST_TEXT bytes; what follows is not looked at."""
    text = content[:LARGEST_TEXT].decode("utf-8", errors="replace")
    text = text.replace("\xa0", " ").replace("|", " ")  # Markdown
    tables: list[Table] = []
    devices: dict[str, str] = {}
    lines = text.split("\n")
    cut_legend = previous = None
    explained: set[str] = set()
    for number, raw in enumerate(lines, start=1):
        line = _ESCAPE.sub("", raw[:_LONGEST_LINE])
        line = line[_QUOTE.match(line).end() :]  # type: ignore[union-attr]  # matches at least nothing
        if word := _LEGEND.match(line):
            explained.add(word[1])
        legend = _NIC_LEGEND.fullmatch(line)
        if legend:
            devices.setdefault(legend[1], legend[2])
            previous = cut_legend = legend[1]
        else:
            cut_legend = previous if previous and line else None if previous else cut_legend
            previous = None
            _take(tables, line, number, cut=number == len(lines) and bool(line))
    whole = tuple(table for table in tables if table.rows)
    told = _LEFT_OUT.search(text)
    left_out = (int(told[1]), int(told[2])) if told else None
    return Paste(whole, devices, cut_legend, frozenset(explained), left_out, text)


def _take(tables: list[Table], line: str, number: int, *, cut: bool) -> None:
    """Add what the line says to the last table, or begin another."""
    line = without_log_prefix(line)
    if line.startswith("Legend") and tables:
        tables[-1].ended = True
        return
    header = header_of(line, number)
    if header:
        tables.append(header)
        return
    open_table = tables[-1] if tables and not tables[-1].ended else None
    row = row_of(line, number, open_table.header if open_table else None, cut=cut)
    if row is None:
        return
    if open_table is None or row.name in {one.name for one in open_table.rows}:
        if not row.name.startswith("GPU"):
            return  # a table begins with a GPU; a stray line does not
        open_table = Table(number)
        tables.append(open_table)
    open_table.rows.append(row)


def listed(members: Iterable[object], most: int = 16) -> str:
    """
    >>> listed(["GPU0", "GPU1", "GPU2"], most=2)
    'GPU0, GPU1 and 1 more'
    """
    names = list(map(str, members))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
