"""Parquet tables with the columns of our CSVs, read by pyarrow; nothing else of ours needs it."""

import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.base import BadInput, one_line, read_bytes
from planner.load.csv_tables import read_rows
from planner.load.dumps.opened import Opened
from planner.load.recording import Recording
from planner.model import ModelSpec

MOST_CELLS = 4_000_000  # each becomes a Python object


def recognise(found: Opened, model: ModelSpec) -> bool:
    """A .parquet or .pq file."""
    del model
    return found.kind == "name" and found.path.suffix.lower() in (".parquet", ".pq")


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """One recording a file."""
    del ranks
    return [_recording(found.path, model) for found in dumps]


def _recording(path: Path, model: ModelSpec) -> Recording:
    """The table's rows are taken as text, as a CSV has them."""
    columns = _columns(path)
    if not columns or not next(iter(columns.values())):
        raise BadInput(f"{path}: the table has no rows")
    rows = ([str(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    return read_rows(list(columns), rows, path, model)


def _columns(path: Path) -> dict[str, list[Any]]:
    content = read_bytes(path)
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise BadInput(
            f"{path}: reading Parquet takes pyarrow, which is not installed: "
            "pip install pyarrow, or save the table as CSV"
        ) from error
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        cells = file.metadata.num_rows * file.metadata.num_columns
        twice = len(set(file.schema.names)) < len(file.schema.names)
        readable = cells <= MOST_CELLS and not twice
        columns: dict[str, list[Any]] = file.read().to_pydict() if readable else {}
    except Exception as error:  # pyarrow has its own tree of errors, and raises OSError and others besides
        reason = one_line(error)
        raise BadInput(f"{path}: not a readable Parquet file ({reason})") from error
    if twice:
        raise BadInput(f"{path}: a column is there twice; which one counts is not known")
    if cells > MOST_CELLS:
        most = f"more than the {MOST_CELLS:,} we read; record fewer windows"
        raise BadInput(f"{path}: unfolds to {cells:,} cells, {most}")
    return columns
