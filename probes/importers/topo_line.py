"""One line of a `nvidia-smi topo -m` paste: the header of a table, or a row with its cells."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_NVLINKS = 36  # of a pair: twice the 18 that an H100 or a B200 has
_LOG_PREFIX = re.compile(r"(?:\[?[\w.,<>-]{1,80}\]?:|\d{4}-\d\d-\d\d[T ][\d:.,Z+-]{5,40})\s+")
_GLUED = re.compile(r"(?:GPU\d{1,4}|NIC\d{1,4}|mlx\d{1,2}_\d{1,4})+")
_GLUED_PART = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|mlx\d{1,2}_\d{1,4}")
_NAME = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|(?!GPU)[A-Za-z][A-Za-z0-9]{1,15}(?:_[A-Za-z0-9]{1,16}){1,3}")
_CPU_COLUMN = re.compile(r"CPU\s{1,16}Affinity")
_ANY_NAME = re.compile(r"GPU\d{1,4}|(?!GPU)[A-Za-z][\w.-]{1,40}")
_LABEL = re.compile(r"[ \t]{0,64}(NV\d{1,3}|SYS|NODE|PHB|PXB|PIX|SOC|X)")
_P2P_WORD = re.compile(r"(?:OK|CNS|GNS|TNS|NS|DR|U)\b")


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


def without_log_prefix(line: str) -> str:
    for _ in range(3):
        if line.startswith(("GPU", "NIC", "Legend")) or not (prefix := _LOG_PREFIX.match(line)):
            break
        line = line[prefix.end() :]
    return line


def header_of(line: str, number: int) -> Table | None:
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


def row_of(line: str, number: int, header: tuple[str, ...] | None, *, cut: bool) -> Row | None:
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
