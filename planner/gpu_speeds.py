"""Speeds of GPUs as a person gives them: 'rank=factor' pairs, or a file of them."""

from typing import Any

from planner.errors import BadInput
from planner.files import read_json, read_yaml

_SUFFIXES = (".json", ".yaml", ".yml")


def read_speeds(text: str) -> dict[int, float]:
    """Speed by rank. A file holds a mapping of ranks to factors, or a list with one factor a rank.

    >>> read_speeds("3=0.9,7=0.85")
    {3: 0.9, 7: 0.85}
    """
    if text.lower().endswith(_SUFFIXES):
        data = read_json(text) if text.lower().endswith(".json") else read_yaml(text)
        entries = enumerate(data) if isinstance(data, list) else data.items() if isinstance(data, dict) else None
        if entries is None:
            raise BadInput(f"--gpu-speed {text}: expected a list of factors or a mapping of ranks to factors, got {type(data).__name__}")
        return dict(_speed(rank, factor, text) for rank, factor in entries)
    pairs = [pair.split("=") for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise BadInput(f"--gpu-speed {text!r}: write rank=factor pairs like 3=0.9,7=0.85, or name a file that ends in {', '.join(_SUFFIXES)}")
    ranks = [rank.strip() for rank, _ in pairs]
    if len(set(ranks)) < len(ranks):
        raise BadInput(f"--gpu-speed {text!r}: a rank is given twice")
    return dict(_speed(rank, factor, text) for rank, factor in pairs)


def _speed(rank: Any, factor: Any, text: str) -> tuple[int, float]:
    try:
        return int(str(rank)), float(str(factor))  # by way of text: true is no number
    except ValueError:
        raise BadInput(f"--gpu-speed {text}: {rank!r} = {factor!r} is no rank with a factor, like 3 = 0.9") from None
