"""The verdict on a run's speed: did the prediction hold, is the promised gain there, and if not, why.

Shapes: R resources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.topology import Topology
from probes.dispatch.timed import EXCHANGES, Floats, Timed
from probes.dispatch.verdict.bottleneck import Wait, wait_of
from probes.dispatch.verdict.causes import Finding, find_cause
from probes.dispatch.verdict.figures import Figures, PhaseFigures, of_layer, of_phase
from probes.dispatch.verdict.finish import link_name
from probes.dispatch.verdict.gain import Gain, judge_gain
from probes.dispatch.verdict.scene import LEAST_NOISE, compute_scene, exchange_scene, noise_of
from probes.dispatch.verdict.tolerance import LawError, Tolerance

PLAN = "plan"


@dataclass(frozen=True, eq=False)
class LayerFigures:
    """One phase of one layer under one placement. `wait` is of the exchanges alone."""

    side: str
    layer_id: int
    row: int
    phase: str
    figures: Figures
    wait: Wait | None


@dataclass(frozen=True, eq=False)
class Verdict:
    """`tolerances` by phase; `gains` of each phase, then of all judged; `cause` where something failed."""

    judged: tuple[str, ...]
    phases: tuple[PhaseFigures, ...]
    layers: tuple[LayerFigures, ...]
    gains: tuple[Gain, ...]
    tolerances: Mapping[str, Tolerance]
    slowest_rank: int
    waited_for: str
    cause: Finding | None

    @property
    def off(self) -> tuple[PhaseFigures, ...]:
        """Phases whose prediction failed: the seconds of the bytes that were sent, beyond the tolerance."""
        return tuple(
            one
            for one in self.phases
            if one.phase in self.judged
            and self.tolerances[one.phase].decides
            and abs(np.log(one.whole.median / one.whole.drawn)) > np.log1p(self.tolerances[one.phase].share)
        )

    @property
    def missed(self) -> tuple[Gain, ...]:
        """Promised gains that are not there."""
        return tuple(one for one in self.gains if one.state == "missed")

    @property
    def undecided(self) -> tuple[str, ...]:
        """Phases that are too noisy, or predicted too badly, for anything to be told."""
        return tuple(phase for phase in self.judged if not self.tolerances[phase].decides)

    @property
    def state(self) -> str:
        """prediction, gain (which of them failed), undecided, kept, or held: no gain that could be told."""
        if self.off:
            return "prediction"
        if self.missed:
            return "gain"
        if self.undecided:
            return "undecided"
        return "kept" if any(one.state == "kept" for one in self.gains) else "held"

    @property
    def ok(self) -> bool:
        return self.state not in ("prediction", "gain")


def judge_speed(
    timed: Sequence[Timed],
    topology: Topology,
    law: Mapping[str, LawError],
    *,
    judged: Sequence[str] = EXCHANGES,
    asked: float | None = None,
) -> Verdict:
    """`law`: by phase, how far off the cost model may be. `judged`: the phases that are told of this machine.

    The first side is the plan; every other side has the same rows.
    """
    sides: dict[str, list[Timed]] = {}
    for one in sorted(timed, key=lambda one: (one.side != PLAN, one.row)):
        sides.setdefault(one.side, []).append(one)
    phases = tuple(of_phase(of_side, phase) for of_side in sides.values() for phase in judged)
    tolerances = {phase: _tolerance(sides, phase, law[phase], asked) for phase in judged}
    worst = max((law[phase] for phase in judged), key=lambda one: one.share)
    each = [((phase,), law[phase]) for phase in judged]
    gains = tuple(
        judge_gain(sides[PLAN], other, of, error, asked)
        for name, other in sides.items()
        for of, error in ([*each, (tuple(judged), worst)] if len(judged) > 1 else each)
        if name != PLAN
    )
    verdict = Verdict(tuple(judged), phases, (), gains, tolerances, 0, "", None)
    cause = None if verdict.ok else _cause(verdict, timed, topology)
    share_R = np.ones(len(topology.resources)) if cause is None else _share_R(cause, topology)
    layers = tuple(
        _of_layer(one, phase, topology, share_R, tolerances)
        for of_side in sides.values()
        for one in of_side
        for phase in judged
    )
    rank, waited_for = _slowest(layers, sides[PLAN], cause)
    return Verdict(tuple(judged), phases, layers, gains, tolerances, rank, waited_for, cause)


def _tolerance(
    sides: Mapping[str, Sequence[Timed]], phase: str, law: LawError, asked: float | None
) -> Tolerance:
    """The noise of the noisiest side."""
    totals = [np.sum([one.slowest_N(phase) for one in of_side], axis=0) for of_side in sides.values()]
    return Tolerance(law, max(noise_of(total_N) for total_N in totals), len(totals[0]), asked)


def _cause(verdict: Verdict, timed: Sequence[Timed], topology: Topology) -> Finding | None:
    """Of the exchanges where one of them failed, else of compute; None where only the bytes lack the gain."""
    phases = {one.phase for one in verdict.off}
    if not phases:
        phases = {phase for gain in verdict.missed if gain.in_bytes for phase in gain.phases}
    if not phases:
        return None
    exchanges = [phase for phase in EXCHANGES if phase in verdict.judged]
    scene = exchange_scene(timed, topology, exchanges) if phases - {"compute"} else compute_scene(timed)
    tolerance = max(verdict.tolerances[phase].law.share for phase in verdict.judged)
    return find_cause(scene, topology, tolerance)


def _share_R(cause: Finding, topology: Topology) -> Floats:
    """Of its rate that each resource reaches by the cause; all of it where that is not of links told."""
    suspect, x = cause.best.suspect, cause.best.x
    share_R = np.ones(len(topology.resources))
    for number, one in enumerate(topology.resources):
        whole_tier = suspect.kind == "tier" and suspect.what in ("", one.tier)
        if whole_tier or (suspect.kind == "link" and suspect.what == link_name(one.name)):
            share_R[number] = x
    return share_R


def _of_layer(
    timed: Timed, phase: str, topology: Topology, share_R: Floats, tolerances: Mapping[str, Tolerance]
) -> LayerFigures:
    wait = None
    if phase in EXCHANGES:
        noise = max(noise_of(timed.slowest_N(phase)), LEAST_NOISE)
        tolerance = replace(tolerances[phase], noise=noise).share
        wait = wait_of(timed, phase, topology, share_R, tolerance, noise)
    return LayerFigures(timed.side, timed.layer_id, timed.row, phase, of_layer(timed, phase), wait)


def _slowest(layers: Sequence[LayerFigures], plan: Sequence[Timed], cause: Finding | None) -> tuple[int, str]:
    """The rank that the plan waits for longest, and the resource that the most seconds of it went to.

    Nothing is named where the cause is none of the resources that were told.
    """
    phases = [phase for phase in EXCHANGES if any(one.phase == phase for one in layers)]
    seconds_G = np.sum(
        [np.median(one.seconds_GN[phase], axis=1) for one in plan for phase in phases or ("compute",)], axis=0
    )
    seconds_of: dict[str, float] = {}
    for one in layers:
        if one.side == PLAN and one.wait is not None:
            name = one.wait.shown or one.wait.named
            seconds_of[name] = seconds_of.get(name, 0.0) + one.figures.median
    slowest = int(seconds_G.argmax())
    if cause is not None and not cause.of_links:
        return slowest, ""
    return slowest, max(seconds_of, key=lambda name: seconds_of[name], default="")
