"""Runs as ranks would have timed them, on a machine that may not be the one that was told of.

Shapes: G GPUs (one rank each), N repeats, R resources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.topology import Topology, topology_from_dict
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES, Expected, Floats, Timed
from tests.probes.dispatch.verdict import fluid

INSIDE, BETWEEN = 100e6, 25e6  # bytes/s


def make_topology(nodes: int = 4, gpus: int = 2, oversubscription: float = 0.0) -> Topology:
    """A NIC for each GPU; leaves of two nodes where an oversubscription is given."""
    rate = {"evidence": "measured", "source": "shaped"}
    node: dict[str, Any] = {
        "count": nodes,
        "gpus": {"model": "H100-SXM-80GB", "count": gpus},
        "nics": [{"gpus": [[gpu] for gpu in range(gpus)], "rate": {"value": "25 MB/s", **rate}}],
    }
    if gpus > 1:
        island = {"gpus": list(range(gpus)), "rate": {"value": "100 MB/s", **rate}}
        node["nvlink"] = {"kind": "switch", "islands": [island]}
    fabric: dict[str, Any] = {"kind": "none", **rate}
    if oversubscription:
        fabric = {"kind": "leaf-spine", "nodes_per_leaf": 2, "oversubscription": oversubscription, **rate}
    value = {"name": "lab", "source": "made up", "nodes": [node], "fabric": fabric}
    return topology_from_dict(value, "lab.yaml")


@dataclass(frozen=True, eq=False)
class Machine:
    """What the run meets: shares of rates by the start of a resource's name, and where ranks really are."""

    topology: Topology
    share: Mapping[str, float] = field(default_factory=dict)
    place_G: Sequence[int] | None = None
    late: float = 0.0  # seconds on top of every phase
    busy: Mapping[int, float] = field(default_factory=dict)  # ranks that take so many times as long
    noise: float = 0.03
    overhead: float = 1.05  # what the law leaves out: it is 5 % low

    def rates_R(self) -> Floats:
        rate_R = self.topology.capacity_R.copy()
        for number, one in enumerate(self.topology.resources):
            for start, share in self.share.items():
                if one.name.startswith(start) or one.tier == start:
                    rate_R[number] *= share
            for rank, times in self.busy.items():
                gpu = self.topology.gpus[rank]
                if one.name.startswith((f"node{gpu.node}/nic{gpu.index}", f"node{gpu.node}/gpu{gpu.index}/")):
                    rate_R[number] /= times
        return rate_R

    def seconds_G(self, bytes_GG: Floats) -> Floats:
        seconds_G = fluid.seconds_G(self.topology, bytes_GG, self.rates_R(), self.place_G)
        return self.overhead * seconds_G + self.late


def make_timed(
    told: Topology,
    machine: Machine,
    *,
    layers: int = 4,
    repeats: int = 5,
    seed: int = 0,
    gain: float = 0.75,
    shown: float | None = None,
    sampled: float = 0.02,
    sides: Sequence[str] = ("plan", "default"),
    inside: float = 0.9,
    skew: float = 0.35,
) -> list[Timed]:
    """Skewed dispatches, of which the plan sends `gain` of what the default does (`shown` where it truly
    sends another part), with the law's predictions on `told` beside them. `inside`: what goes to a GPU of
    the own node, as a part of what goes to one of another.
    """
    rng, gpus = np.random.default_rng(seed), told.gpu_count
    found = []
    for layer in range(layers):
        hot_G, twist_GG = rng.lognormal(0, skew, gpus), rng.lognormal(0, 0.15, (gpus, gpus))
        even_GG = np.where(told.node_G[:, None] == told.node_G, inside, 1.0)
        drift_N = rng.lognormal(0, machine.noise / 2, repeats)  # what all sides of a repeat meet alike
        for side in sides:
            part = 1.0 if side == "default" else gain
            there_GG = 1e6 * hot_G * twist_GG * even_GG * part * rng.lognormal(0, 0.05, (gpus, gpus))
            expected = make_expected(told, there_GG, float(rng.lognormal(0, sampled)))
            truly = (shown / gain if shown is not None and side != "default" else 1.0) * machine.seconds_G(
                there_GG
            )
            back = machine.seconds_G(there_GG.T) * (shown / gain if shown and side != "default" else 1.0)
            compute_G = np.array([0.01 * machine.busy.get(rank, 1.0) for rank in range(gpus)])
            seconds = {"dispatch": truly, "combine": back, "compute": compute_G}
            shape = (gpus, repeats)
            found.append(
                Timed(
                    side,
                    layer,
                    layer,
                    {
                        phase: seconds[phase][:, None]
                        * drift_N
                        * rng.lognormal(0, machine.noise, repeats)
                        * rng.lognormal(0, 0.01, shape)
                        for phase in PHASES
                    },
                    expected,
                )
            )
    return found


def make_expected(told: Topology, there_GG: Floats, sampling: float) -> Expected:
    """The law on the bytes; the expectation is off by the sampling."""
    bytes_GG = {"dispatch": there_GG, "combine": there_GG.T}
    drawn_R = {phase: told.resource_bytes(bytes_GG[phase]) / told.capacity_R for phase in EXCHANGES}
    drawn = {phase: float(drawn_R[phase].max()) for phase in EXCHANGES} | {"compute": 0.01}
    return Expected(
        modelled={phase: seconds * sampling for phase, seconds in drawn.items()},
        drawn=drawn,
        drawn_R=drawn_R,
        start=dict.fromkeys(EXCHANGES, 0.0),
        bytes_GG=bytes_GG,
        bytes_per_s_R=dict.fromkeys(EXCHANGES, told.capacity_R),
        compute_G=np.full(told.gpu_count, 0.01),
    )
