"""Speeds of GPUs as a person gives them: 'rank=factor' pairs, or a file of them."""

from typing import Any

from planner.base import BadInput, read_json, read_yaml

_SUFFIXES = (".json", ".yaml", ".yml")


def read_speeds(text: str, gpus: int) -> dict[int, float]:
    """Speed by rank. A file holds a mapping of ranks to factors, or a list with one factor for each of the machine's `gpus` ranks.

    >>> read_speeds("3=0.9,7=0.85", 8)
    {3: 0.9, 7: 0.85}
    """
    if text.lower().endswith(_SUFFIXES):
        data = read_json(text) if text.lower().endswith(".json") else read_yaml(text)
        entries = (
            enumerate(data) if isinstance(data, list) else data.items() if isinstance(data, dict) else None
        )
        if entries is None:
            raise BadInput(
                f"--gpu-speed {text}: expected a list of factors or a mapping of ranks to factors, got {type(data).__name__}"
            )
        if isinstance(data, list) and len(data) != gpus:
            raise BadInput(
                f"--gpu-speed {text}: the list has {len(data)} factors, the machine {gpus} GPUs; give one a rank, or a mapping of ranks to factors"
            )
        return _by_rank([_speed(rank, factor, text) for rank, factor in entries], text)
    pairs = [pair.split("=") for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise BadInput(
            f"--gpu-speed {text!r}: write rank=factor pairs like 3=0.9,7=0.85, or name a file that ends in {', '.join(_SUFFIXES)}"
        )
    return _by_rank([_speed(rank, factor, text) for rank, factor in pairs], text)


def _by_rank(speeds: list[tuple[int, float]], text: str) -> dict[int, float]:
    if len(dict(speeds)) < len(speeds):
        raise BadInput(f"--gpu-speed {text!r}: a rank is given twice")
    return dict(speeds)


def _speed(rank: Any, factor: Any, text: str) -> tuple[int, float]:
    try:
        return int(str(rank)), float(str(factor))  # by way of text: true is no number
    except ValueError:
        raise BadInput(
            f"--gpu-speed {text}: {rank!r} = {factor!r} is no rank with a factor, like 3 = 0.9"
        ) from None
