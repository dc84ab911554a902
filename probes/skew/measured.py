"""What one machine did under one transport, as a file: seconds of every rank and repeat, and the predicted.

JSON, schema 'moeplan/skew/1'. It is read only by the benchmark that wrote it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from planner.base import BadInput, read_json, write_json
from probes.dispatch.timed import Expected, Timed

SCHEMA = "moeplan/skew/1"


@dataclass(frozen=True, eq=False)
class Measured:
    """Rows of the run are the settings. `key` stands for all that was asked: shape, loads, placements."""

    shape: str
    transport: str
    settings: tuple[str, ...]
    timed: tuple[Timed, ...]
    key: str
    date: str
    machine: str


def write_measured(path: Path, found: Measured) -> None:
    """Whole or not at all."""
    rest = {
        name: getattr(found, name) for name in ("shape", "transport", "settings", "key", "date", "machine")
    }
    timed = [
        {
            "side": one.side,
            "layer_id": one.layer_id,
            "row": one.row,
            "seconds": _lists(one.seconds_GN),
            "expected": {field.name: _plain(getattr(one.expected, field.name)) for field in fields(Expected)},
        }
        for one in found.timed
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": SCHEMA, **rest, "timed": timed})


def read_measured(path: Path) -> Measured:
    """BadInput where it is of another kind."""
    value = read_json(path)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise BadInput(f"{path}: no results of the benchmark of skew; remove it")
    timed = tuple(
        Timed(one["side"], one["layer_id"], one["row"], _arrays(one["seconds"]), _expected(one["expected"]))
        for one in value["timed"]
    )
    texts = {name: value[name] for name in ("shape", "transport", "key", "date", "machine")}
    return Measured(**texts, settings=tuple(value["settings"]), timed=timed)


def _expected(value: Mapping[str, Any]) -> Expected:
    """Of each field a mapping: to numbers, or to arrays; or an array alone."""
    return Expected(**{name: _read(part) for name, part in value.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _read(part) for name, part in value.items()}
    return np.array(value, dtype=np.float64) if isinstance(value, list) else value


def _lists(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: array.tolist() for name, array in arrays.items()}


def _arrays(lists: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.array(values, dtype=np.float64) for name, values in lists.items()}
