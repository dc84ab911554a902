"""The NICs of one host from several sources, the best evidence first."""

import re
from collections.abc import Sequence
from dataclasses import replace

from probes.base.facts import HostFacts, NicFact
from probes.machine.ledger import Ledger, Places

_PLACEHOLDER = re.compile(r"NIC\d{1,4}\??")  # the driver's number for a NIC, which says nothing of the device


def merge_nics(facts: Sequence[HostFacts], ledger: Ledger) -> tuple[tuple[NicFact, ...], Places]:
    """The NICs in the order of the first source with paths to GPUs (its names are kept).

    Then come those that only others show; matched by device, then PCI.
    """
    order = sorted(range(len(facts)), key=lambda place: not facts[place].nic_paths)
    nics: list[NicFact] = []
    places: Places = [{} for _ in facts]
    for number in order:
        fact = facts[number]
        strangers = [nic for nic in fact.nics if _place_of(nic, nics) is None]
        if nics and strangers and all(_PLACEHOLDER.fullmatch(nic.name) and not nic.device for nic in nics):
            _apply_alike(fact, nics, ledger)
        else:
            places[number] = _add(fact, nics, ledger)
    return tuple(nics), places


def _add(fact: HostFacts, nics: list[NicFact], ledger: Ledger) -> dict[int, int]:
    """The fact's index of each NIC -> ours."""
    mine: dict[int, int] = {}
    for index, nic in enumerate(fact.nics):
        place = _place_of(nic, nics)
        if place is None:
            place = len(nics)
            nics.append(NicFact(nic.name))
        mine[index] = place
        name = nics[place].name
        known = ledger.fill(nics[place], replace(nic, name=name), fact, "nic", place)
        names_device = nic.name not in (name, nic.pci) and known.device is None
        nics[place] = replace(known, device=nic.name) if names_device else known
    return mine


def _place_of(nic: NicFact, known: Sequence[NicFact]) -> int | None:
    """The same device, or the same PCI function where one side is known by that alone."""
    name = nic.device or nic.name
    if not _PLACEHOLDER.fullmatch(name):
        for place, other in enumerate(known):
            if name == other.name or (name == other.device and nic.name in (name, other.name)):
                return place
    at = [
        place
        for place, other in enumerate(known)
        if nic.pci and other.pci == nic.pci and (other.name == other.pci or nic.name == nic.pci)
    ]
    return at[0] if len(at) == 1 else None


def _apply_alike(fact: HostFacts, nics: list[NicFact], ledger: Ledger) -> None:
    """Rates for NICs whose devices are not named, where every device of the other source has the same rate.

    Then who is who does not matter.
    """
    rates = {nic.rate_bytes_per_s for nic in fact.nics if nic.compute is not False}
    names = f"{nics[0].name} to {nics[-1].name}"
    all_up = all(nic.up is not False for nic in fact.nics)
    if len(rates) != 1 or None in rates or len(fact.nics) != len(nics) or not all_up:
        missing = "the legend with their device names is missing; not used"
        ledger.warn(f"{fact.source} cannot be matched with {names}: {missing}")
        return
    (rate,) = rates
    ledger.warn(f"all NICs of {fact.source} have the same rate, so it is used for {names}")
    for place, nic in enumerate(nics):
        if nic.rate_bytes_per_s is None:
            nics[place] = replace(nic, rate_bytes_per_s=rate)
            ledger.credit("nic", place, "rate_bytes_per_s", fact)
