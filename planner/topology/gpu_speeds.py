"""Speeds of GPUs as a person gives them: 'rank=factor' pairs, or a file of them."""

import re
from collections.abc import Iterable
from typing import Any

from planner.base import BadInput, is_whole, read_json, read_yaml, shown

_FACTOR = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?([eE][-+]?[0-9]{1,3})?", re.ASCII)
_SUFFIXES = (".json", ".yaml", ".yml")


def read_speeds(text: str, gpus: int) -> dict[int, float]:
    """Speed by rank.

    A file holds a mapping of ranks to factors, or a list with one factor for each of the `gpus` ranks.

    >>> read_speeds("3=0.9,7=0.85", 8)
    {3: 0.9, 7: 0.85}
    """
    entries = _of_file(text, gpus) if text.lower().endswith(_SUFFIXES) else _of_pairs(text)
    return _by_rank([_speed(rank, factor, text) for rank, factor in entries], text)


def _of_file(path: str, gpus: int) -> Iterable[tuple[Any, Any]]:
    data = read_json(path) if path.lower().endswith(".json") else read_yaml(path)
    if isinstance(data, dict):
        return data.items()
    if not isinstance(data, list):
        expected = "expected a list of factors or a mapping of ranks to factors"
        raise BadInput(f"--gpu-speed {path}: {expected}, got {type(data).__name__}")
    if len(data) != gpus:
        raise BadInput(
            f"--gpu-speed {path}: the list has {len(data)} factors, the machine {gpus} GPUs; "
            "give one a rank, or a mapping of ranks to factors"
        )
    return enumerate(data)


def _of_pairs(text: str) -> Iterable[tuple[Any, Any]]:
    pairs = [pair.split("=") for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise BadInput(
            f"--gpu-speed {text!r}: write rank=factor pairs like 3=0.9,7=0.85, "
            f"or name a file that ends in {', '.join(_SUFFIXES)}"
        )
    return [(rank, factor) for rank, factor in pairs]


def _by_rank(speeds: list[tuple[int, float]], text: str) -> dict[int, float]:
    if len(dict(speeds)) < len(speeds):
        raise BadInput(f"--gpu-speed {text!r}: a rank is given twice")
    return dict(speeds)


def _speed(rank: Any, factor: Any, text: str) -> tuple[int, float]:
    said_rank, said_factor = str(rank), str(factor)  # by way of text: true is no number
    if not (is_whole(said_rank) and len(said_rank) < 10 and _FACTOR.fullmatch(said_factor)):
        said = f"{shown(rank)} = {shown(factor)} is no rank with a factor, like 3 = 0.9"
        raise BadInput(f"--gpu-speed {text}: {said}")
    return int(said_rank), float(said_factor)
