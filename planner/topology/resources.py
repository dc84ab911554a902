"""Directed capacities, and the list of them that grows while a machine is wired."""

from dataclasses import dataclass, field

from planner.base import Rate

LinkEnds = tuple[int, int]  # the two resources of a link: out and in, or up and down


@dataclass(frozen=True)
class Resource:
    """A directed capacity: an edge of the capacity graph from vertex `tail` to vertex `head`."""

    name: str
    tier: str  # nvlink, pcie, host, nic, leaf, spine
    rate: Rate
    tail: str
    head: str


@dataclass
class Resources:
    """The resources so far. `joints` are vertices that a link without a known rate joins, both ways."""

    made: list[Resource] = field(default_factory=list)
    joints: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, tier: str, rate: Rate, tail: str, head: str) -> int:
        self.made.append(Resource(name, tier, rate, tail, head))
        return len(self.made) - 1

    def add_link(self, name: str, tier: str, rate: Rate, near: str, far: str) -> LinkEnds:
        """Out and in, of equal rate: the bisection relies on that symmetry."""
        out = self.add(f"{name}/out", tier, rate, near, far)
        return out, self.add(f"{name}/in", tier, rate, far, near)

    def add_uplink(self, name: str, tier: str, rate: Rate, near: str, far: str) -> LinkEnds:
        """Up and down, of equal rate as above."""
        up = self.add(f"{name}/up", tier, rate, near, far)
        return up, self.add(f"{name}/down", tier, rate, far, near)
