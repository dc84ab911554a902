"""Load CSVs, long (layer_id,expert_id,count[,window]) and wide (layer,e0,e1,...[,window]), to a Recording.

Rows become numbers as they come: a table takes little more memory than its counts.
Shapes: R rows of the table, W windows, L layers, E experts.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, csv_rows, shown
from planner.load.csv_cells import Numbers, whole_id
from planner.load.recording import Array, Recording, check_size
from planner.model import ModelSpec

Ids = npt.NDArray[np.int64]


class _Rows:
    """Where each row belongs, and its numbers one after the other."""

    def __init__(self) -> None:
        self.windows: dict[str, int] = {}  # name -> number; none where there is no such column
        self.window_R, self.layer_R, self.expert_R = array("q"), array("q"), array("q")
        self.numbers = Numbers()

    def names(self, window: int) -> str:
        return f"window {list(self.windows)[window]!r}, " if self.windows else ""


def read_csv_recording(path: Path, model: ModelSpec) -> Recording:
    """Counts of a CSV; windows are in order of first appearance. In the long form an absent cell counts 0."""
    rows = csv_rows(path)
    return read_rows(next(rows), rows, path, model)


def read_rows(
    header: Sequence[str], rows: Iterable[Sequence[str]], path: Path, model: ModelSpec
) -> Recording:
    """The same of rows of text below a header."""
    layer, window = _column(header, "layer_id", "layer"), _column(header, "window")
    if layer is None:
        listed = shown(",".join(header))
        raise BadInput(f"{path}: there is no column 'layer_id' or 'layer'; the header is {listed}")
    rest = [name for name in header if name not in (layer, window)]
    expert, count = _column(rest, "expert_id", "expert"), _column(rest, "count", "tokens")
    long = expert is not None and count is not None and len(rest) == 2
    columns = [str(count)] if long else _expert_columns(rest, path)
    place = {name: at for at, name in enumerate(header)}
    at_N, found = [place[name] for name in columns], _Rows()
    for row, cells in enumerate(rows, start=1):
        where = f"{path}: data row {row}"
        name = cells[place[window]] if window else None
        found.window_R.append(0 if name is None else found.windows.setdefault(name, len(found.windows)))
        found.layer_R.append(whole_id(cells[place[layer]], where, layer))
        if long:
            found.expert_R.append(whole_id(cells[place[str(expert)]], where, str(expert)))
        found.numbers.take([cells[at] for at in at_N], where)
    return _long(found, path, model) if long else _wide(found, path, len(columns))


def _wide(found: _Rows, path: Path, experts: int) -> Recording:
    """A row is of one window and layer."""
    layer_ids, row_R = np.unique(_ints(found.layer_R), return_inverse=True)
    windows, layers = max(len(found.windows), 1), len(layer_ids)
    check_size(str(path), windows, layers, experts)
    flat_R = _ints(found.window_R) * layers + row_R
    _refuse_twice(flat_R, path, lambda flat: f"{found.names(flat // layers)}layer {layer_ids[flat % layers]}")
    return _recording(
        found, path, flat_R, found.numbers.values((-1, experts)), (windows, layers, experts), layer_ids
    )


def _long(found: _Rows, path: Path, model: ModelSpec) -> Recording:
    """A row is of one window, layer and expert."""
    layers_R, experts_R = _ints(found.layer_R), _ints(found.expert_R)
    _check_experts(path, layers_R, experts_R, model)
    _check_reach(path, layers_R, experts_R, model)
    layer_ids, row_R = np.unique(layers_R, return_inverse=True)
    shape = (max(len(found.windows), 1), len(layer_ids), model.experts)
    check_size(str(path), *shape)
    flat_R = (_ints(found.window_R) * shape[1] + row_R) * shape[2] + experts_R

    def told(flat: int) -> str:
        window, row, expert = (int(at) for at in np.unravel_index(flat, shape))
        return f"{found.names(window)}layer {layer_ids[row]}, expert {expert}"

    _refuse_twice(flat_R, path, told)
    return _recording(found, path, flat_R, found.numbers.values((-1,)), shape, layer_ids)


def _recording(
    found: _Rows, path: Path, flat_R: Ids, numbers: Array, shape: tuple[int, int, int], layer_ids: Ids
) -> Recording:
    """The numbers of each row in their place; what has none counts 0."""
    values = np.zeros(shape, dtype=numbers.dtype)
    values.reshape((-1, *numbers.shape[1:]))[flat_R] = numbers
    names = tuple(found.windows)
    return Recording(str(path), values, layer_ids=tuple(layer_ids.tolist()), window_names=names)


def _refuse_twice(flat_R: Ids, path: Path, told: Callable[[int], str]) -> None:
    sorted_R = np.sort(flat_R)
    twice = np.flatnonzero(sorted_R[1:] == sorted_R[:-1])
    if len(twice):
        raise BadInput(
            f"{path}: {told(int(sorted_R[twice[0]]))} has more than one row; "
            "give the parts as separate files or add a window column"
        )


def _check_experts(path: Path, layers_R: Ids, experts_R: Ids, model: ModelSpec) -> None:
    """BadInput with the largest expert id where the model has no such expert."""
    worst = experts_R.argmax()
    if experts_R[worst] >= model.experts:
        raise BadInput(
            f"{path}: layer {layers_R[worst]} names expert {experts_R[worst]}; "
            f"{model.name} has the experts 0..{model.experts - 1} "
            "(counts of physical slots need their physical-to-logical map: "
            "sum the slots of each expert, or give a tensor or npz with --map)"
        )


def _check_reach(path: Path, layers_R: Ids, experts_R: Ids, model: ModelSpec) -> None:
    """BadInput where every layer has a row for every expert of the lower half and none has one above: an
    absent cell counts 0, and the load of a smaller model looks like that.
    """
    experts = int(experts_R.max()) + 1
    rows = np.unique(layers_R * experts + experts_R)
    layers = len(np.unique(layers_R))
    whole = len(rows) == layers * experts and experts >= max(model.top_k, 2)
    if layers > 1 and whole and 2 * experts <= model.experts:
        raise BadInput(
            f"{path}: each of its {layers} layers has the experts 0..{experts - 1}, and {model.name} has "
            f"{model.experts}; this looks like the load of another model (write zeros where it is not)"
        )


def _column(header: Sequence[str], *names: str) -> str | None:
    return next((name for name in header if name.lower() in names), None)


def _expert_columns(header: list[str], path: Path) -> list[str]:
    """Columns e0, e1, ... (also 0, 1, ... or expert_0, ...) in order of expert id."""
    matches = {name: re.fullmatch(r"(?:e|expert_?)?([0-9]{1,6})", name.lower(), re.ASCII) for name in header}
    unknown = [name for name, match in matches.items() if match is None]
    if unknown or not header:
        raise BadInput(
            f"{path}: column {shown((unknown or ['none'])[0])} is not known; "
            "the header is layer_id,expert_id,count[,window] or layer,e0,e1,...[,window]"
        )
    column_of = {int(match[1]): name for name, match in matches.items() if match}
    if sorted(column_of) != list(range(len(header))):
        raise BadInput(
            f"{path}: {len(header)} expert columns must be numbered 0..{len(header) - 1}, each once; "
            f"got {', '.join(header[:12])}"
        )
    return [column_of[expert] for expert in range(len(header))]


def _ints(found: "array[int]") -> Ids:
    return np.frombuffer(found, dtype=np.int64)
