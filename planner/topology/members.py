"""GPUs and NICs by their number inside a node: checked, renumbered, listed in words."""

from collections.abc import Iterable

from planner.base import BadInput


def check_groups(where: str, groups: list[tuple[int, ...]], count: int, noun: str = "GPU") -> None:
    """No group is empty, no member is beyond the node's `count` or in two places."""
    members = [member for group in groups for member in group]
    for member in members:
        if not 0 <= member < count:
            raise BadInput(f"{where}: there is no {noun} {member}; the node's are 0 to {count - 1}")
    if len(set(members)) != len(members):
        twice = next(member for member in members if members.count(member) > 1)
        raise BadInput(f"{where}: {noun} {twice} is listed twice")
    if any(not group for group in groups):
        raise BadInput(f"{where}: lists no GPU; name the GPUs it serves")


def renumbered(members: tuple[int, ...], new: dict[int, int]) -> tuple[int, ...]:
    """Those that have a new number, by it."""
    return tuple(new[member] for member in members if member in new)


def listed(members: Iterable[int]) -> str:
    return ", ".join(map(str, members))
