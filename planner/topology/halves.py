"""Balanced halves of units: all that differ while they are few, else a fixed family of them.

Units that are alike are interchangeable, so halves that differ only in which of them they hold are one.
"""

from collections.abc import Hashable, Iterator, Sequence

ALL_HALVES = 462  # of 12 units that all differ: C(12, 6) / 2
MOST_KINDS = 12

Half = tuple[int, ...]  # unit numbers


def halves(kinds: Sequence[Hashable]) -> tuple[list[Half], bool]:
    """Halves of units of these kinds, whose sizes differ by one at most, and whether these are all.

    >>> halves(["fast", "fast", "slow", "slow"])
    ([(0, 2), (0, 1)], True)
    """
    members: dict[Hashable, list[int]] = {}
    for unit, kind in enumerate(kinds):
        members.setdefault(kind, []).append(unit)
    groups = list(members.values())
    size = len(kinds) // 2
    if len(groups) > MOST_KINDS:
        return _family(len(kinds), size, groups), False
    found: dict[Half, None] = {}
    for counts in _splits([len(group) for group in groups], size):
        mirror = tuple(len(group) - count for group, count in zip(groups, counts, strict=True))
        if 2 * size < len(kinds) or counts >= mirror:  # of two mirrored halves one is enough
            taken = (group[:count] for group, count in zip(groups, counts, strict=True))
            found[tuple(sorted(unit for units in taken for unit in units))] = None
        if len(found) > ALL_HALVES:
            return _family(len(kinds), size, groups), False
    return list(found), True


def _splits(available: list[int], total: int) -> Iterator[tuple[int, ...]]:
    """All ways to take `total` from groups of these sizes."""
    if len(available) == 1:
        if total <= available[0]:
            yield (total,)
        return
    rest = sum(available[1:])
    for first in range(max(0, total - rest), min(available[0], total) + 1):
        for tail in _splits(available[1:], total - first):
            yield (first, *tail)


def _family(count: int, size: int, groups: list[list[int]]) -> list[Half]:
    """Consecutive units from several starting points, every other unit, and kind after kind.

    These cut along leaves, and across them.
    """
    # a flow over thousands of GPUs takes seconds
    starts = range(0, count, max(count // 16, 1))[:8] if count <= 128 else (0, count // 4)
    runs = [[(start + offset) % count for offset in range(size)] for start in starts]
    by_kind = [unit for group in groups for unit in group][:size]
    spread = sorted(range(count), key=lambda unit: (unit % 2, unit))[:size]
    return list(dict.fromkeys(tuple(sorted(half)) for half in (*runs, spread, by_kind)))
