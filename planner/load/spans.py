"""Ids for people: runs of neighbours written as spans."""

from collections.abc import Sequence
from itertools import groupby


def spans(ids: Sequence[int]) -> str:
    """
    >>> spans([0, 1, 2, 7, 9])
    '0-2, 7, 9'
    """
    runs = [[layer for _, layer in run] for _, run in groupby(enumerate(ids), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def named_spans(noun: str, ids: Sequence[int]) -> str:
    """
    >>> named_spans("layer", [3]), named_spans("rank", [3, 4])
    ('layer 3', 'ranks 3-4')
    """
    return f"{noun}{'s' if len(ids) > 1 else ''} {spans(ids)}"
