"""Measured rates beside the stated ones of the same links."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.base import Evidence, Rate, human_bandwidth
from planner.topology.all_to_all import AllToAll
from planner.topology.resources import Resource
from planner.topology.stated import as_stated
from planner.topology.topology import Topology

_NEAR_TO_FAR = ("nvlink", "pcie", "host", "nic", "leaf", "spine")
# The least share of the stated rate that a healthy all-to-all of large messages reaches. Public runs: NICs 85
# to 97 % (H100 2 x 8, MI300X 2 x 8), NVLink 60 to 76 % (A100, B300, GB300); of PCIe x16 NCCL counts on 81 %.
REACHED = {"nvlink": 0.55, "pcie": 0.65, "host": 0.65, "nic": 0.8, "leaf": 0.8, "spine": 0.8}
ABOVE = 1.05  # of the stated rate: more than the error of a fit
NEARLY = 1.1  # a tier that is not that much faster may have been waited for as well


@dataclass(frozen=True)
class Comparison:
    """What links carried beside what was stated of them, of `links` alike of which `where` is the first.

    `run` is the benchmark where it is at hand: a topology file keeps the rate alone.
    """

    tier: str  # nvlink, pcie, host, nic, leaf, spine
    where: str
    links: int
    stated: Rate
    measured: Rate
    run: AllToAll | None = None
    peer_share: float = 0.0  # bytes over the link for each byte to each other GPU, of `run`
    also: tuple[str, ...] = ()  # tiers that `run` may have waited for as well, being nearly as slow
    nics: int = 1  # that work as the link
    gpus: int = 1  # that share the link

    @property
    def share(self) -> float:
        """Measured over stated."""
        return self.measured.bytes_per_s / self.stated.bytes_per_s

    @property
    def departs(self) -> bool:
        """Whether the links do not what can be expected of them."""
        return not REACHED[self.tier] <= self.share <= ABOVE

    @property
    def text(self) -> str:
        """'23 of the stated 50 GB/s a NIC (46 %)'."""
        measured = human_bandwidth(self.measured.bytes_per_s)
        stated = human_bandwidth(self.stated.bytes_per_s)
        number, unit = measured.split()
        told = number if unit == stated.split()[1] else measured
        return f"{told} of the stated {stated} {self._links} ({100 * self.share:.0f} %)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; rates in bytes/s."""
        return {
            "tier": self.tier,
            "where": self.where,
            "links": self.links,
            "nics": self.nics,
            "gpus": self.gpus,
            "stated_bytes_per_s": self.stated.bytes_per_s,
            "stated_by": f"{self.stated.evidence.kind}: {self.stated.evidence.source}",
            "measured_bytes_per_s": self.measured.bytes_per_s,
            "measured_by": self.measured.evidence.source,
            "share": self.share,
            "departs": self.departs,
            "figures": self.text,
        }

    @property
    def _links(self) -> str:
        if self.tier == "nic":
            nics = "a NIC" if self.nics == 1 else f"of {self.nics} NICs"
            return nics + (f" that {self.gpus} GPUs share" if self.gpus > 1 else "")
        names = {"nvlink": "NVLink", "pcie": "PCIe", "host": "inside the host", "leaf": "of a leaf's uplinks"}
        return names.get(self.tier, "of a spine's uplinks")


def kept_comparisons(topology: Topology) -> tuple[Comparison, ...]:
    """Of the rates in a topology that have both figures, alike links once, from near to far."""
    alike: dict[tuple[str, Rate, Rate], list[int]] = {}
    for index, resource in enumerate(topology.resources):
        rate = resource.rate
        if rate.stated is not None and rate.evidence.kind == "measured" and not _comes_back(resource):
            alike.setdefault((resource.tier, rate.stated, rate), []).append(index)
    found = [
        _with_use(
            topology, links[0], Comparison(tier, _place(topology, links[0]), len(links), stated, measured)
        )
        for (tier, stated, measured), links in alike.items()
    ]
    return tuple(sorted(found, key=lambda one: _NEAR_TO_FAR.index(one.tier)))


def unstated(topology: Topology) -> tuple[Resource, ...]:
    """Links of a measured rate of which nothing stated is kept: they can be compared with nothing."""
    measured = (one for one in topology.resources if one.rate.evidence.kind == "measured")
    return tuple(one for one in measured if one.rate.stated is None and one.tier in ("nvlink", "pcie", "nic"))


def against_stated(topology: Topology, run: AllToAll) -> Comparison | None:
    """The links that this exchange must wait for by the stated rates, and what they carried instead.

    None where it crosses no link that the topology has a rate of. Of tiers that are equally slow the nearest:
    uplinks of a fabric of 1:1 are as fast as the NICs below them.
    """
    stated = as_stated(topology)
    load_R = stated.resource_bytes(run.sent_GG(stated.gpu_count))
    seconds_R = load_R / stated.capacity_R
    worst = float(seconds_R.max(initial=0.0))
    if not worst > 0:
        return None
    slowest = np.flatnonzero(seconds_R > 0.999 * worst).tolist()
    tier = min((stated.resources[index].tier for index in slowest), key=_NEAR_TO_FAR.index)
    links = [index for index in slowest if stated.resources[index].tier == tier]
    first, peer_share = stated.resources[links[0]], float(load_R[links[0]])
    measured = first.rate.measured_as(peer_share / run.slope, Evidence("measured", run.source))
    count = sum(not _comes_back(stated.resources[index]) for index in links)
    close = {stated.resources[index].tier for index in np.flatnonzero(seconds_R * NEARLY > worst).tolist()}
    also = tuple(sorted(close - {tier} - ({"leaf", "spine"} if tier == "nic" else set())))
    place = _place(stated, links[0])
    found = Comparison(tier, place, count, first.rate, measured, run, peer_share, also)
    return _with_use(stated, links[0], found)


def _with_use(topology: Topology, link: int, found: Comparison) -> Comparison:
    """With the number of NICs that the link is, and of GPUs that share it."""
    if found.tier != "nic":
        return found
    sharing = sum(bool(path) and path[-1] == link for path in topology.routes.egress)
    more = found.where.rpartition("+")[2] if "+" in found.where else "0"
    return replace(found, nics=1 + int(more), gpus=max(sharing, 1))


def _place(topology: Topology, link: int) -> str:
    return topology.resources[link].name.removesuffix("/out").removesuffix("/up")


def _comes_back(resource: Resource) -> bool:
    return resource.name.endswith(("/in", "/down"))
