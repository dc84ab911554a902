"""Oversubscription of the leaves, and what it rests on."""

from collections.abc import Sequence

from planner.base import Evidence
from probes.base.facts import FabricFacts
from probes.fabric.naming import natural
from probes.machine.host import Notes


def oversubscription_of(
    leaves: set[str], facts: Sequence[FabricFacts], stated: float | None, notes: Notes
) -> tuple[float, Evidence]:
    """The worst leaf's rate to hosts / rate to spines.

    Where rates are not told: cables of the same kind, else what a person stated, else 1, assumed.
    """
    fact = next((fact for fact in facts if fact.ports), facts[0])
    found = _ratios(leaves, facts)
    if found:
        return _worst(found, fact, stated, notes)
    if len(leaves) == 1:
        return 1.0, Evidence(fact.evidence, f"{fact.source}: one leaf for all hosts")
    if stated is not None:
        why = f"stated by the user (--oversubscription); leaves by {fact.source}"
        return max(1.0, stated), Evidence("assumed", why)
    untold = f"{fact.source} does not tell the rates of the leaves' uplinks"
    notes.unknown.append(f"{untold}; taken as not oversubscribed: give --oversubscription")
    return 1.0, Evidence("assumed", f"no source tells the uplinks; leaves by {fact.source}")


def _ratios(leaves: set[str], facts: Sequence[FabricFacts]) -> dict[str, float]:
    """Down / up of each leaf where the rates of all its cables are told."""
    found: dict[str, float] = {}
    for fact in facts:
        for leaf in sorted(leaves):
            down = [port.rate_bytes_per_s for port in fact.ports if port.leaf == leaf]
            up = [fact.uplink_bytes_per_s.get(pair) for pair in fact.uplinks if pair[0] == leaf]
            if down and up and None not in down and None not in up:
                found[leaf] = sum(rate or 0.0 for rate in down) / sum(rate or 0.0 for rate in up)
    return found


def _worst(
    found: dict[str, float], fact: FabricFacts, stated: float | None, notes: Notes
) -> tuple[float, Evidence]:
    worst = min(found, key=lambda leaf: (-found[leaf], natural(leaf)))
    ratio, least = found[worst], min(found.values())
    if ratio > 1.01 * least:
        differ = f"leaves differ, {least:.2f} to {ratio:.2f} down / up"
        notes.warnings.append(f"{fact.source}: {differ}; the worst, {worst}, counts for all")
    if stated is not None and abs(stated - max(1.0, ratio)) > 0.02 * stated:
        both = f"{ratio:.2f} by {fact.source}, --oversubscription says {stated:g}"
        notes.warnings.append(f"oversubscription is {both}; the first is used")
    return max(1.0, ratio), Evidence(fact.evidence, f"{fact.source}: rates of the cables of {worst}")
