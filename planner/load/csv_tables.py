"""Load CSVs, long (layer_id,expert_id,count[,window]) and wide (layer,e0,e1,...[,window]), to a Recording.

Shapes: R rows of the table, N cells, W windows, L layers, E experts.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, read_csv
from planner.load.recording import Array, Recording, check_size
from planner.model import ModelSpec

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Cells:
    """One count a cell, and where it belongs."""

    windows_N: Ids
    layers_N: Ids
    experts_N: Ids
    counts_N: Array


def read_csv_recording(path: Path, model: ModelSpec) -> Recording:
    """Counts of a CSV; windows are in order of first appearance. In the long form an absent cell counts 0."""
    return read_rows(read_csv(path), path, model)


def read_rows(rows: list[dict[str, str]], path: Path, model: ModelSpec) -> Recording:
    """The same of rows of text keyed by the header."""
    header = list(rows[0])
    layer, window = _column(header, "layer_id", "layer"), _column(header, "window")
    if layer is None:
        raise BadInput(f"{path}: there is no column 'layer_id' or 'layer'; the header is {','.join(header)}")
    names = list(dict.fromkeys(row[window] for row in rows)) if window else []
    position = {name: index for index, name in enumerate(names)}
    windows_R = np.array([position[row[window]] if window else 0 for row in rows], dtype=np.int64)
    layers_R = _ids([row[layer] for row in rows], path, layer)
    rest = [name for name in header if name not in (layer, window)]
    expert, count = _column(rest, "expert_id", "expert"), _column(rest, "count", "tokens")
    if expert and count and len(rest) == 2:
        experts_N = _ids([row[expert] for row in rows], path, expert)
        _check_experts(path, layers_R, experts_N, model)
        cells = _Cells(windows_R, layers_R, experts_N, _numbers([row[count] for row in rows], path))
        _check_reach(path, cells, model)
        return _recording(str(path), names, cells, model.experts)
    columns = _expert_columns(rest, path)
    counts_N = _numbers([row[name] for row in rows for name in columns], path)
    cells = _unfolded(windows_R, layers_R, counts_N, len(columns))
    return _recording(str(path), names, cells, len(columns))


def _unfolded(windows_R: Ids, layers_R: Ids, counts_N: Array, experts: int) -> _Cells:
    """Rows of one count an expert as cells."""
    experts_N = np.tile(np.arange(experts), len(layers_R))
    return _Cells(np.repeat(windows_R, experts), np.repeat(layers_R, experts), experts_N, counts_N)


def _check_experts(path: Path, layers_N: Ids, experts_N: Ids, model: ModelSpec) -> None:
    """BadInput with the largest expert id where the model has no such expert."""
    worst = experts_N.argmax()
    if experts_N[worst] >= model.experts:
        raise BadInput(
            f"{path}: layer {layers_N[worst]} names expert {experts_N[worst]}; "
            f"{model.name} has the experts 0..{model.experts - 1} "
            "(counts of physical slots need their physical-to-logical map: "
            "sum the slots of each expert, or give a tensor or npz with --map)"
        )


def _check_reach(path: Path, cells: _Cells, model: ModelSpec) -> None:
    """BadInput where every layer has a row for every expert of the lower half and none has one above: an
    absent cell counts 0, and the load of a smaller model looks like that.
    """
    experts = int(cells.experts_N.max()) + 1
    rows = np.unique(cells.layers_N * experts + cells.experts_N)
    layers = len(np.unique(cells.layers_N))
    whole = len(rows) == layers * experts and experts >= max(model.top_k, 2)
    if layers > 1 and whole and 2 * experts <= model.experts:
        raise BadInput(
            f"{path}: each of its {layers} layers has the experts 0..{experts - 1}, and {model.name} has "
            f"{model.experts}; this looks like the load of another model (write zeros where it is not)"
        )


def _recording(path: str, names: list[str], cells: _Cells, experts: int) -> Recording:
    layer_ids, rows_N = np.unique(cells.layers_N, return_inverse=True)
    shape = (max(len(names), 1), len(layer_ids), experts)
    check_size(path, *shape)
    flat_N = (cells.windows_N * shape[1] + rows_N) * experts + cells.experts_N
    distinct, times = np.unique(flat_N, return_counts=True)
    if len(distinct) < len(flat_N):
        window, row, expert = np.unravel_index(distinct[times > 1][0], shape)
        where = f"window {names[window]!r}, " if names else ""
        raise BadInput(
            f"{path}: {where}layer {layer_ids[row]}, expert {expert} has more than one row; "
            "give the parts as separate files or add a window column"
        )
    values = np.zeros(shape, dtype=cells.counts_N.dtype)
    values.reshape(-1)[flat_N] = cells.counts_N
    return Recording(path, values, layer_ids=tuple(layer_ids.tolist()), window_names=tuple(names))


def _column(header: list[str], *names: str) -> str | None:
    return next((name for name in header if name.lower() in names), None)


def _expert_columns(header: list[str], path: Path) -> list[str]:
    """Columns e0, e1, ... (also 0, 1, ... or expert_0, ...) in order of expert id."""
    matches = {name: re.fullmatch(r"(?:e|expert_?)?([0-9]{1,6})", name.lower()) for name in header}
    unknown = [name for name, match in matches.items() if match is None]
    if unknown or not header:
        raise BadInput(
            f"{path}: column {(unknown or ['none'])[0]!r} is not known; "
            "the header is layer_id,expert_id,count[,window] or layer,e0,e1,...[,window]"
        )
    column_of = {int(match[1]): name for name, match in matches.items() if match}
    if sorted(column_of) != list(range(len(header))):
        raise BadInput(
            f"{path}: {len(header)} expert columns must be numbered 0..{len(header) - 1}, each once; "
            f"got {', '.join(header[:12])}"
        )
    return [column_of[expert] for expert in range(len(header))]


def _ids(cells: list[str], path: Path, column: str) -> Ids:
    for row, cell in enumerate(cells):
        if not (cell.isascii() and cell.isdecimal() and len(cell) < 10):
            raise BadInput(
                f"{path}: data row {row + 1}: {column} is {cell!r}; expected a whole number from 0"
            )
    return np.array([int(cell) for cell in cells], dtype=np.int64)


def _numbers(cells: list[str], path: Path) -> Array:
    """int64 where every cell is a whole number that fits, else float64, which the caller checks."""
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        pass  # 'nan', '3.0' or too large for int64: as floats they are named cell by cell
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError as error:
        raise BadInput(
            f"{path}: the count {str(error).rpartition(': ')[2]} is no number; expected a whole number"
        ) from error
