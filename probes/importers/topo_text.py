"""The words of a `nvidia-smi topo -m` paste: tables, rows and cells as they stand.

What pastes suffer is undone here: ANSI escapes, quoting, indentation, log prefixes, tabs turned to spaces,
names and cells glued together. A table ends at its legend, at the next header, or where a row name comes
again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

LINK_WORDS = "X, NV#, PIX, PXB, PHB, NODE, SYS"
LARGEST_TEXT = 8 << 20
MOST_NVLINKS = 36
_LONGEST_LINE = 16_384  # 400 columns of 40 characters
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]|[\r\x00]")
_ESCAPE_BYTES = re.compile(rb"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_QUOTE = re.compile(r"[\s>*#`]{0,64}")
_LOG_PREFIX = re.compile(r"(?:\[?[\w.,<>-]{1,80}\]?:|\d{4}-\d\d-\d\d[T ][\d:.,Z+-]{5,40})\s+")
_GLUED = re.compile(r"(?:GPU\d{1,4}|NIC\d{1,4}|mlx\d{1,2}_\d{1,4})+")
_GLUED_PART = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|mlx\d{1,2}_\d{1,4}")
_NAME = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|(?!GPU)[A-Za-z][A-Za-z0-9]{1,15}(?:_[A-Za-z0-9]{1,16}){1,3}")
_CPU_COLUMN = re.compile(r"CPU\s{1,16}Affinity")
_ANY_NAME = re.compile(r"GPU\d{1,4}|(?!GPU)[A-Za-z][\w.-]{1,40}")
_LABEL = re.compile(r"[ \t]{0,64}(NV\d{1,3}|SYS|NODE|PHB|PXB|PIX|SOC|X)")
_P2P_WORD = re.compile(r"(?:OK|CNS|GNS|TNS|NS|DR|U)\b")
_LEGEND = re.compile(r"(X|SYS|NODE|PHB|PXB|PIX|NV#|SOC)[ \t]{1,8}= ")
_NIC_LEGEND = re.compile(r"(NIC\d{1,4}):[ \t]{1,16}([A-Za-z][\w.-]{1,40})\s*")
_START = re.compile(
    rb"(?:GPU|NIC)\d{1,4}[ \t]{1,64}(?:X|NV\d{1,2}|SYS|NODE|PHB|PXB|PIX|SOC)\b"
    rb"|GPU0[ \t]{0,64}(?:GPU1\b|CPU[ \t]{1,16}Affinity)"
)


@dataclass(frozen=True)
class Row:
    """A row as written: `cells` until the first word that is no link word, `rest` from there.

    `cut`: the text ends inside it, without a line break.
    """

    line: int
    name: str
    cells: tuple[str, ...]
    rest: str
    cut: bool


@dataclass
class Table:
    """One matrix. `header` is None where there is none.

    `header_ends` where the affinity columns show that no name is missing on the right.
    """

    line: int
    header: tuple[str, ...] | None = None
    header_ends: bool = False
    numa_column: bool = False
    gpu_numa_column: bool = False
    rows: list[Row] = field(default_factory=list)
    ended: bool = False

    @property
    def is_p2p(self) -> bool:
        return any(_P2P_WORD.match(row.rest) for row in self.rows)


@dataclass(frozen=True)
class Paste:
    """All tables of a text, and the NIC legend (NIC0 -> mlx5_0).

    `cut_legend` is the entry that is not followed by another one or an empty line.
    """

    tables: tuple[Table, ...]
    devices: dict[str, str]
    cut_legend: str | None
    legend: frozenset[str] = frozenset()  # the link words that it explains


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
    return Paste(whole, devices, cut_legend, frozenset(explained))


def _take(tables: list[Table], line: str, number: int, *, cut: bool) -> None:
    """Add what the line says to the last table, or begin another."""
    line = _without_log_prefix(line)
    if line.startswith("Legend") and tables:
        tables[-1].ended = True
        return
    header = _header(line, number)
    if header:
        tables.append(header)
        return
    open_table = tables[-1] if tables and not tables[-1].ended else None
    row = _row(line, number, open_table.header if open_table else None, cut=cut)
    if row is None:
        return
    if open_table is None or row.name in {one.name for one in open_table.rows}:
        if not row.name.startswith("GPU"):
            return  # a table begins with a GPU; a stray line does not
        open_table = Table(number)
        tables.append(open_table)
    open_table.rows.append(row)


def _without_log_prefix(line: str) -> str:
    for _ in range(3):
        if line.startswith(("GPU", "NIC", "Legend")) or not (prefix := _LOG_PREFIX.match(line)):
            break
        line = line[prefix.end() :]
    return line


def _header(line: str, number: int) -> Table | None:
    """A line of names that begins with a GPU, or None."""
    affinity = _CPU_COLUMN.search(line)
    words = (line[: affinity.start()] if affinity else line).split()
    names = _column_names(words, _ANY_NAME if affinity else _NAME)
    if not names or not names[0].startswith("GPU") or (affinity is None and len(names) < 2):
        return None
    whole = affinity is not None and len(words) <= len(names)
    rest = line[affinity.end() :] if affinity else ""
    return Table(
        number,
        tuple(names),
        whole,
        bool(re.search(r"NUMA\s{1,16}Affinity", rest)),
        bool(re.search(r"GPU\s{1,16}NUMA", rest)),
    )


def _column_names(words: Iterable[str], a_name: re.Pattern[str]) -> list[str]:
    """The words that are names, as far as they reach."""
    names: list[str] = []
    for word in words:
        if _GLUED.fullmatch(word):
            names += _GLUED_PART.findall(word)
        elif a_name.fullmatch(word):
            names.append(word)
        else:
            break
    return names


def _row(line: str, number: int, header: tuple[str, ...] | None, *, cut: bool) -> Row | None:
    """The row of a line, or None. A name of the header wins over a guess at where a name ends."""
    guess = _NAME.match(line)
    named = max((name for name in header or () if line.startswith(name)), key=len, default=guess and guess[0])
    if named is None:
        return None
    cells, rest = _cells(line[len(named) :])
    return Row(number, named, cells, rest, cut) if cells else None


def _cells(text: str) -> tuple[tuple[str, ...], str]:
    """The link words that the text begins with, and what follows them."""
    cells: list[str] = []
    place = 0
    while match := _LABEL.match(text, place):
        word, after = match[1], text[match.end() : match.end() + 1]
        if word.startswith("NV"):
            if not 1 <= int(word[2:]) <= MOST_NVLINKS or (after and after in "0123456789-,"):
                break  # glued to the CPU list behind it: 'NV180-55' could be 18 or 1
            if not after:
                return tuple(cells), ""  # 'NV1' may be what is left of 'NV18'
        cells.append("SYS" if word == "SOC" else word)  # SOC: what drivers before 2017 called it
        place = match.end()
    return tuple(cells), text[place:].strip()


def listed(members: Iterable[object], most: int = 16) -> str:
    """
    >>> listed(["GPU0", "GPU1", "GPU2"], most=2)
    'GPU0, GPU1 and 1 more'
    """
    names = list(map(str, members))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
