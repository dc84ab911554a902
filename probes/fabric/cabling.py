"""The pattern in which most hosts hang on the leaves: all NICs on one, or the n-th NIC on a rail."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.base.facts import Notes
from probes.fabric.cables import usual_count
from probes.fabric.naming import natural, some_of

_MOST_OF = 0.9  # of the hosts must follow a pattern for it to be the fabric's; the others are named
LeavesOf = Mapping[str, Sequence[str]]  # host -> the leaf of each of its NICs, in order


@dataclass(frozen=True)
class Cabling:
    """`kind` is none, leaf-spine or rail; None where it cannot be told, which the notes say."""

    kind: str | None
    notes: Notes
    rail_of_nic: tuple[int, ...] = ()
    rails: tuple[tuple[str, ...], ...] = ()  # leaves of each rail


def cabling_of(leaves_of: LeavesOf, *, tells_nics: bool, is_flat: bool) -> Cabling:
    """`tells_nics`: whether the source names NICs; `is_flat`: whether there is but one switch."""
    notes = Notes()
    if not leaves_of:
        notes.unknown.append("no host has a name and a leaf: the shape of the fabric is not told")
        return Cabling(None, notes)
    if not tells_nics:
        notes.unknown.append("which NIC is on which leaf is not told: rails, if there are any, do not show")
    usual = _usual_hosts(leaves_of, notes)
    pattern = _most_common_pattern(usual, notes)
    if pattern is None:
        return Cabling(None, notes)
    if len(set(pattern)) == 1:
        return Cabling("none" if is_flat else "leaf-spine", notes)
    rail_of_nic = tuple(sorted(set(pattern)).index(first) for first in pattern)
    rails, strays = _rails(usual, rail_of_nic)
    if len(strays) > (1 - _MOST_OF) * len(usual):
        hosts = (
            f"{len(strays)} of {len(usual)} hosts have NICs on the leaf of another's other NIC ({strays[0]})"
        )
        notes.unknown.append(f"{hosts}: neither rails nor one leaf a host")
        return Cabling(None, notes)
    if strays:
        notes.warnings.append(f"cabled to the leaf of another rail: {some_of(strays)}")
    return Cabling("rail", notes, rail_of_nic, rails)


def _usual_hosts(leaves_of: LeavesOf, notes: Notes) -> LeavesOf:
    """Those with the usual number of cables."""
    count = usual_count(len(leaves) for leaves in leaves_of.values())
    usual = {host: leaves for host, leaves in leaves_of.items() if len(leaves) == count}
    odd = sorted(set(leaves_of) - set(usual), key=natural)
    if odd:
        notes.warnings.append(
            f"{len(odd)} hosts have another number of cables than the usual {count}: {some_of(odd)}"
        )
    return usual


def _most_common_pattern(leaves_of: LeavesOf, notes: Notes) -> tuple[int, ...] | None:
    """For each NIC the first NIC on the same leaf; None where too few hosts agree."""
    pattern_of = {host: tuple(leaves.index(leaf) for leaf in leaves) for host, leaves in leaves_of.items()}
    patterns = Counter(pattern_of.values())
    pattern, followers = min(patterns.items(), key=lambda entry: (-entry[1], entry[0]))
    if followers < _MOST_OF * len(leaves_of):
        ways = f"hosts are cabled in {len(patterns)} ways, none of them most hosts'"
        notes.unknown.append(f"{ways}: the shape of the fabric is not told")
        return None
    others = sorted((host for host, own in pattern_of.items() if own != pattern), key=natural)
    if others:
        notes.warnings.append(f"{len(others)} hosts are cabled unlike the others: {', '.join(others[:10])}")
    return pattern


def _rails(leaves_of: LeavesOf, rail_of_nic: Sequence[int]) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """Leaves of each rail, and the hosts with a NIC on the leaf of another rail.

    A leaf is of the rail that most NICs on it have.
    """
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for leaves in leaves_of.values():
        for rail, leaf in zip(rail_of_nic, leaves, strict=True):
            votes[leaf][rail] += 1
    rail_of = {leaf: min(count, key=lambda rail: (-count[rail], rail)) for leaf, count in votes.items()}
    rails = tuple(
        tuple(sorted((leaf for leaf, rail in rail_of.items() if rail == wanted), key=natural))
        for wanted in range(max(rail_of_nic) + 1)
    )
    strays = [
        host
        for host, leaves in leaves_of.items()
        if any(rail_of[leaf] != rail for rail, leaf in zip(rail_of_nic, leaves, strict=True))
    ]
    return rails, sorted(strays, key=natural)
