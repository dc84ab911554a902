"""One row of nccl-tests: size, count and type, then numbers, which may be broken by other output. Pure."""

import re
from dataclasses import dataclass

from probes.measure.nccl_lines import REDOPS, Line
from probes.measure.nccl_table import ELEMENT_BYTES, Half, Row

_COLUMNS = ("time", "algbw", "busbw", "#wrong")
_INTEGER = re.compile(r"-?\d{1,9}")
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?\*?|-1|N/A|-?(?:nan|inf)")


@dataclass(frozen=True)
class OpenRow:
    """A row whose numbers have not all come yet."""

    line: int
    lead: tuple[str, str, str]
    words: tuple[str, ...]
    noisy: bool  # a log message was taken out of its line
    pieces: int = 1

    @property
    def redop(self) -> str:
        return self.words[0] if self.words and self.words[0] in REDOPS else ""

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.words[1:] if self.redop else self.words

    def expects_more(self, header: tuple[str, ...]) -> bool:
        return len(self.numbers) < len(_numeric_columns(header)) - (0 if header else 1)


def open_row(line: Line) -> OpenRow | None:
    """The row that begins in this line."""
    lead = line.lead
    if lead is None:
        return None
    words = tuple(line.text[lead.end() :].split())
    return OpenRow(line.number, (lead[1], lead[2], lead[3]), words, line.noisy)


def continues(line: Line) -> tuple[str, ...]:
    """The numbers of a line that holds nothing else."""
    words = tuple(line.text.split())
    return words if line.lead is None and all(_NUMBER.fullmatch(word) for word in words) else ()


def close_row(opened: OpenRow, header: tuple[str, ...], *, followed: bool) -> tuple[Row | None, list[str]]:
    """The row, where it has any measurement, and what a reader must know of it.

    Half a row at the end of the text is its first half, and so is half a row that a log message broke. Any
    other may be either half: it is left out.
    """
    columns = _columns(opened, header)
    starts = [index for index, column in enumerate(columns) if column == "time"][:2]
    numbers = [opened.numbers[start : start + 4] for start in starts]
    halves = [_half(words, in_place=bool(order)) for order, words in enumerate(numbers)]
    found = tuple(half for half in halves if half is not None)
    either = (followed or opened.pieces > 1) and not opened.noisy and len(found) < len(halves)
    if either or not _is_sound(opened, columns):
        found = ()
    size, count, dtype = opened.lead
    where = f"line {opened.line}"
    warnings = []
    if opened.pieces > 1 and found:
        broken = f"the row of size {size} was broken by other output"
        warnings.append(f"{where}: {broken} and has been put together")
    if len(found) < len(starts):
        what = "one measurement is" if found else "its measurements are"
        warnings.append(f"{where}: the row of size {size} is cut or unreadable: {what} missing")
    row = Row(where, int(size), int(count), dtype, opened.redop, found) if found else None
    return row, warnings


def _numeric_columns(header: tuple[str, ...]) -> list[str]:
    """Names of the numbers of a row, in order. Without a header: those of a row of today."""
    if header:
        return [column for column in header[3:] if column != "redop"]
    return ["root", *_COLUMNS, *_COLUMNS]


def _columns(opened: OpenRow, header: tuple[str, ...]) -> list[str]:
    columns = _numeric_columns(header)
    without_root = len(opened.numbers) in (4, 8) and opened.numbers[0] != "-1"
    return columns[1:] if not header and without_root else columns


def _is_sound(opened: OpenRow, columns: list[str]) -> bool:
    """Whether no digit of its size or count is lost or overwritten, and its root is a number."""
    size, count, dtype = opened.lead
    fits = int(count) == 0 or int(size) % (int(count) * ELEMENT_BYTES[dtype]) == 0
    root = opened.numbers[0] if opened.numbers else ""
    return fits and (columns[0] != "root" or _INTEGER.fullmatch(root) is not None)


def _half(words: tuple[str, ...], *, in_place: bool) -> Half | None:
    """Time in microseconds, algbw and busbw in GB/s (10^9), and #wrong."""
    if len(words) < 3 or not all(is_float(word) for word in words[:3]):
        return None
    microseconds, algbw, busbw = map(float, words[:3])
    wrong = words[3].rstrip("*") if len(words) > 3 else ""
    return Half(in_place, microseconds / 1e6, algbw * 1e9, busbw * 1e9, wrong)


def is_float(word: str) -> bool:
    """Whether it is a finite, non-negative number."""
    try:
        return 0 <= float(word) < 1e15
    except ValueError:
        return False
