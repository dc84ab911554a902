"""CSV as it is read: a header that names each column once, then rows as long as it, one at a time."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from planner.base.errors import BadInput
from planner.base.files import LARGEST_TEXT_BYTES, not_text, read_bytes
from planner.base.shown import shown

MOST_COLUMNS = 200_000


def csv_rows(path: str | Path, largest: int = LARGEST_TEXT_BYTES) -> Iterator[list[str]]:
    """The header, then each row; spaces around cells are taken away.

    BadInput where a column is named twice, a row is of another length, or there is none.
    """
    content = read_bytes(path, largest)
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=""))
    header: list[str] = []
    rows = 0
    try:
        for cells in reader:
            if not cells:
                continue  # an empty line
            if not header:
                header = [cell.strip() for cell in cells]
                _check_header(header, path)
                yield header
                continue
            if len(cells) != len(header):
                counts = f"has {len(cells)} cells, the header {len(header)}"
                raise BadInput(f"{path}: line {reader.line_num}: {counts}")
            rows += 1
            yield [cell.strip() for cell in cells]
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num}: not valid CSV ({error})") from error
    except UnicodeDecodeError as error:
        raise not_text(path, content) from error
    if not rows:
        raise BadInput(f"{path}: no rows below the header")


def read_csv(path: str | Path) -> list[dict[str, str]]:
    """Rows keyed by the header, for tables that are small."""
    rows = csv_rows(path)
    header = next(rows)
    return [dict(zip(header, cells, strict=True)) for cells in rows]


def _check_header(header: list[str], path: str | Path) -> None:
    if len(header) > MOST_COLUMNS:
        raise BadInput(f"{path}: {len(header):,} columns are more than the {MOST_COLUMNS:,} we read")
    seen: set[str] = set()
    for name in header:
        if name.lower() in seen:
            raise BadInput(f"{path}: the column {shown(name)} is there twice; which one counts is not known")
        seen.add(name.lower())
