"""Is the fabric good enough? What was measured beside what is stated, and what that costs a step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.planning.diagnosis.causes import causes
from planner.planning.diagnosis.cost import Fault, MachineCost, Mended
from planner.planning.diagnosis.nodes import own_nics
from planner.planning.diagnosis.signs import Cause, Signs
from planner.topology import (
    ABOVE,
    AllToAll,
    Comparison,
    Topology,
    against_stated,
    as_stated,
    kept_comparisons,
    with_share,
)

GOOD_ENOUGH = 0.05  # of a step: what predictions are off by where they are judged best


@dataclass(frozen=True)
class AtStep:
    """The same links at the size of the step's own messages, by the benchmark's sweep."""

    peer_bytes: float
    seconds: float | None  # None: smaller than any size of the sweep
    bytes_per_s: float | None
    start_seconds: float | None


@dataclass(frozen=True)
class Reading:
    """One comparison, why it may be as it is, and what it costs a step. `at_step` needs the benchmark."""

    seen: Comparison
    causes: tuple[Cause, ...]
    loss: Mended
    at_step: AtStep | None


@dataclass(frozen=True)
class FabricVerdict:
    """What the links do, and what a step would gain from the best fabric of this kind.

    That is one at the stated rates, of 1:1, with a NIC for every GPU that shares one. `by_design` are the
    faults of the others, which no benchmark has to show.
    """

    model: str
    phase: str
    readings: tuple[Reading, ...]
    by_design: tuple[Fault, ...]
    whole: Mended
    moving_share: float  # dispatch and combine, of the step
    error: str  # of the predicted seconds, on this GPU
    domains: int

    @property
    def good(self) -> bool | None:
        """None where nothing was measured and nothing stands against it by design."""
        enough = self.whole.share < GOOD_ENOUGH
        return enough if self.readings or not enough else None

    @property
    def design(self) -> Fault | None:
        """What costs more by design than all that was measured; None where that costs more."""
        measured = self.worst.loss.lost_seconds if self.worst else 0.0
        most = max(self.by_design, key=lambda one: one.cost_seconds or 0.0, default=None)
        return most if most is not None and (most.cost_seconds or 0.0) > measured else None

    @property
    def worst(self) -> Reading | None:
        """What costs the most; of equals what is furthest from the stated rate."""
        return max(self.readings, key=lambda one: (one.loss.lost_seconds, -one.seen.share), default=None)


def compared(topology: Topology, runs: Sequence[AllToAll]) -> tuple[Comparison, ...]:
    """What benchmarks show beside what is stated, then what the topology itself keeps of other tiers."""
    seen = [found for run in runs if (found := against_stated(topology, run)) is not None]
    tiers = {one.tier for one in seen}
    return (*seen, *(one for one in kept_comparisons(topology) if one.tier not in tiers))


def as_measured(topology: Topology, seen: Sequence[Comparison]) -> Topology:
    """The machine with what the benchmarks show; a rate above the stated one is not believed.

    Of several on one tier the one that is most like a dispatch: all to all before rails, then the slowest.
    """
    best: dict[str, Comparison] = {}
    for one in sorted(seen, key=lambda one: (one.run is None or one.run.scope != "all", one.share)):
        if one.run is not None and one.share <= ABOVE:
            best.setdefault(one.tier, one)
    for tier, one in best.items():
        topology = with_share(topology, tier, min(one.share, 1.0), one.measured.evidence.source)
    return topology


def judge_fabric(
    machine: MachineCost, before: Topology, seen: Sequence[Comparison], by_design: Sequence[Fault]
) -> FabricVerdict:
    """The machine as measured; `before` is it without these benchmarks."""
    best = tuple(map(own_nics, as_stated(before).nodes))
    rails = next((one.share for one in seen if one.run and one.run.scope == "rail"), None)
    peer_bytes = machine.peer_bytes()
    readings = tuple(
        Reading(
            one,
            causes(Signs(before, one, rails)),
            _loss(machine, before, one.tier),
            _at_step(one, peer_bytes),
        )
        for one in seen
    )
    fabric = replace(before.fabric, oversubscription=1.0, pod_oversubscription=1.0)
    return FabricVerdict(
        machine.model.name,
        machine.workload.phase,
        readings,
        tuple(by_design),
        machine.loss(best, fabric),
        machine.moving_seconds / machine.step.total_seconds,
        machine.step.error,
        before.domain_count,
    )


def _loss(machine: MachineCost, before: Topology, tier: str) -> Mended:
    """What the step loses against the stated rate of that tier."""
    if tier in ("leaf", "spine"):
        return machine.loss(fabric=before.fabric.as_stated)
    return machine.loss(as_stated(machine.topology, (tier,)).nodes)


def _at_step(seen: Comparison, peer_bytes: float) -> AtStep | None:
    if seen.run is None or not peer_bytes:
        return None
    seconds = seen.run.seconds(peer_bytes)
    rate = None if seconds is None else peer_bytes * seen.peer_share / seconds
    return AtStep(peer_bytes, seconds, rate, seen.run.start_seconds)
