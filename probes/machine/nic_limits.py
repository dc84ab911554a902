"""What a person says of the NICs of a GPU, and what they can carry at most: PCIe is before them."""

from collections.abc import Sequence
from dataclasses import replace

from planner.base import BadInput, Evidence, Rate, human_bandwidth, weakest
from planner.topology import Nic
from probes.machine.gpu_table import GpuLinks
from probes.machine.host import Host, Notes
from probes.machine.pcie_of import pcie_rate

_SLACK = 1.001


def given_nics(host: Host, nic_of: Sequence[tuple[int, tuple[str, ...]]]) -> dict[int, tuple[int, ...]]:
    """The NICs of each GPU that --nic-of names, by our numbers.

    BadInput where the host has no such GPU or NIC.
    """
    places = {nic.name: place for place, nic in reversed(list(enumerate(host.nics)))}
    places |= {nic.device: place for place, nic in enumerate(host.nics) if nic.device}
    found: dict[int, tuple[int, ...]] = {}
    for gpu, names in nic_of:
        where = f"--nic-of {gpu}={','.join(names)}"
        if gpu >= len(host.gpus):
            raise BadInput(f"{where}: {host.title} has GPUs 0 to {len(host.gpus) - 1}")
        strange = next((name for name in names if name not in places), None)
        if strange is not None:
            known = ", ".join(nic.name for nic in host.nics[:16]) or "none"
            raise BadInput(f"{where}: {host.title} has no NIC {strange!r}; it has {known}")
        found[gpu] = tuple(dict.fromkeys((*found.get(gpu, ()), *(places[name] for name in names))))
    return found


def within_pcie(host: Host, nics: Sequence[Nic], gpus: Sequence[GpuLinks], notes: Notes) -> tuple[Nic, ...]:
    """The NICs, slower where those of one pool would carry more together than the PCIe of its GPUs.

    So many NICs beside one GPU are virtual functions of fewer cards.
    """
    kept: list[Nic] = []
    told: dict[str, list[int]] = {}
    for members in dict.fromkeys(nic.gpus for nic in nics):
        mine = [nic for nic in nics if nic.gpus == members]
        links = [pcie_rate(host, gpu, gpus[gpu]) for gpu in members]
        most, asked = sum(link.bytes_per_s for link in links), sum(nic.rate.bytes_per_s for nic in mine)
        if asked > most * _SLACK:
            carried = f"PCIe carries {human_bandwidth(most)}"
            both = f"{len(mine)} NICs are {human_bandwidth(asked)} together, {carried}"
            told.setdefault(both, []).extend(members)
            kind = weakest((links[0].evidence, *(nic.rate.evidence for nic in mine))).kind
            share = Evidence(kind, f"a share of what PCIe carries: {links[0].evidence.source}")
            mine = [replace(nic, rate=Rate(nic.rate.bytes_per_s * most / asked, share)) for nic in mine]
        kept += mine
    for both, over in told.items():
        guess = "virtual functions of fewer cards, perhaps; planned as what PCIe carries"
        which = f"GPU {', '.join(map(str, over[:16]))}"
        notes.warnings.append(f"{host.title}: {which}: {both}: {guess}")
    return tuple(kept)
