"""Values as plain ones for JSON: attributes by their names, columns as rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Arrays and tuples as lists; anything else as it is."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def attributes(value: object, *names: str) -> dict[str, Any]:
    """
    >>> attributes(np.eye(2), "ndim", "shape")
    {'ndim': 2, 'shape': [2, 2]}
    """
    return {name: plain(getattr(value, name)) for name in names}


def rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    >>> rows({"layer": (0, 1), "seconds": np.array([0.5, 1.5])})
    [{'layer': 0, 'seconds': 0.5}, {'layer': 1, 'seconds': 1.5}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(plain, columns.values()), strict=True)]
