"""The network between nodes: leaves, rails, pods, and NVLink domains that span nodes."""

import math
from dataclasses import dataclass, replace
from typing import Any

from planner.base import BadInput, Evidence


@dataclass(frozen=True)
class Fabric:
    """The network between nodes.

    `none`: one flat network without a bottleneck that we know of. `leaf-spine`: `nodes_per_leaf` consecutive
    nodes share a leaf switch. `rail`: the NICs of rail r of those nodes share a leaf. A leaf's uplink is the
    rate of its NICs / `oversubscription`. `nodes_per_pod` (0: no such tier) consecutive nodes share a spine,
    whose uplink is the sum of its leaves' uplinks / `pod_oversubscription`. `nvlink_domain_nodes` consecutive
    nodes share one NVLink domain: 1 for most machines, 18 for an NVL72 rack. `stated` is what was said of it
    before its uplinks were measured.
    """

    kind: str
    evidence: Evidence
    nodes_per_leaf: int = 1
    oversubscription: float = 1.0
    nvlink_domain_nodes: int = 1
    nodes_per_pod: int = 0
    pod_oversubscription: float = 1.0
    stated: "Fabric | None" = None

    def __post_init__(self) -> None:
        if self.kind not in ("none", "leaf-spine", "rail"):
            raise BadInput(f"fabric kind {self.kind!r} is not one of none, leaf-spine, rail")
        if self.nodes_per_leaf < 1 or self.nvlink_domain_nodes < 1:
            raise BadInput(
                f"fabric: nodes_per_leaf {self.nodes_per_leaf} and "
                f"nvlink_domain_nodes {self.nvlink_domain_nodes} must be at least 1"
            )
        if self.stated is not None and self.stated.stated is not None:
            raise BadInput("fabric: what is stated beside what was measured has itself something beside it")
        for name in ("oversubscription", "pod_oversubscription"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 1):
                raise BadInput(f"fabric: {name} is {value}; it is down / up bandwidth and at least 1")
        if self.nodes_per_pod and (self.kind == "none" or self.nodes_per_pod % self.nodes_per_leaf):
            raise BadInput(
                f"fabric: nodes_per_pod {self.nodes_per_pod} must be a multiple of "
                f"nodes_per_leaf {self.nodes_per_leaf}, in a fabric with leaves"
            )

    @property
    def as_stated(self) -> "Fabric":
        """What was stated of it; itself where nothing was measured."""
        return self.stated or self

    def measured_as(self, tier: str, ratio: float, evidence: Evidence) -> "Fabric":
        """With uplinks of a leaf or spine that are oversubscribed by so much, as a measurement says."""
        name = {"leaf": "oversubscription", "spine": "pod_oversubscription"}[tier]
        changes: dict[str, Any] = {name: max(1.0, ratio), "evidence": evidence, "stated": self.as_stated}
        return replace(self, **changes)
