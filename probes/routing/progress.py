"""Telling how far a recording is."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Progress = Callable[[float, str], None]
Item = TypeVar("Item")


def one_by_one(sequences: Sequence[Item], progress: Progress | None) -> Iterator[tuple[int, Item]]:
    """The sequences with their numbers; progress is told when the work on one is done."""
    for number, sequence in enumerate(sequences):
        yield number, sequence
        if progress:
            progress((number + 1) / len(sequences), f"sequence {number + 1} of {len(sequences)}")
