"""What a validation run came to: what its ranks saw, what they took, and the verdict on both."""

from dataclasses import dataclass

from planner.topology import Topology
from probes.dispatch.report import DispatchReport
from probes.dispatch.timed import Timed
from probes.dispatch.verdict import LayerFigures, Verdict
from probes.dispatch.verdict.figures import PhaseFigures, of_layer, of_phase
from probes.dispatch.verdict.words import how_to_check, sentence


@dataclass(frozen=True)
class Scope:
    """What was run: said beside every figure of it."""

    tokens: int  # of a rank
    width: int  # elements of a token
    repeats: int
    seed: int
    transport: str
    dispatch_dtype: str
    combine_dtype: str
    emulated_scale: float | None = None  # what an emulated cluster's rates are divided by


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the run measured, and what was predicted for the same layers, token count and width.

    `verdict` is None where the speed of this machine says nothing of the plan's; `unjudged` says why.
    """

    report: DispatchReport
    scope: Scope
    topology: Topology
    timed: tuple[Timed, ...]  # side by side for each row
    verdict: Verdict | None
    unjudged: str

    @property
    def ok(self) -> bool:
        return self.report.ok and (self.verdict is None or self.verdict.ok)

    @property
    def failed(self) -> list[str]:
        failed = [f"check '{one.name}' failed: {one.detail}" for one in self.report.checks if not one.ok]
        if self.verdict is not None and not self.verdict.ok:
            failed.append(self.speed)
        return failed

    @property
    def speed(self) -> str:
        """The verdict in one line, or why there is none."""
        return (
            f"Speed not judged: {self.unjudged}"
            if self.verdict is None
            else sentence(self.verdict, self.topology)
        )

    @property
    def answer(self) -> str:
        """The first line: wrong traffic proves nothing of speed."""
        wrong = [one for one in self.report.checks if not one.ok]
        if not wrong:
            return self.speed if self.verdict is not None else f"The traffic is right. {self.speed}"
        return f"The traffic is wrong: {self.failed[0]}"

    @property
    def to_do(self) -> str:
        """What proves the likeliest cause, in one line; empty where none was looked for."""
        cause = self.verdict.cause if self.verdict is not None else None
        return "" if cause is None else how_to_check(cause, self.topology)

    @property
    def phases(self) -> tuple[PhaseFigures, ...]:
        """Every phase of every side, judged or not."""
        sides = {side: [one for one in self.timed if one.side == side] for side in self.report.cells}
        return tuple(of_phase(found, phase) for phase in self.report.timed_phases for found in sides.values())

    @property
    def layers(self) -> tuple[LayerFigures, ...]:
        """Every layer, side and phase; what was waited for is known where speed was judged."""
        if self.verdict is not None:
            return self.verdict.layers
        return tuple(
            LayerFigures(one.side, one.layer_id, one.row, phase, of_layer(one, phase), None)
            for one in self.timed
            for phase in self.report.timed_phases
        )

    @property
    def measured_seconds(self) -> dict[str, dict[str, float]]:
        """By side and phase, over the layers that were run."""
        return {
            side: {phase: float(phases[phase].sum()) for phase in self.report.timed_phases}
            for side, phases in self.report.seconds_L.items()
        }

    @property
    def predicted_seconds(self) -> dict[str, dict[str, float]]:
        """By expectation, like `measured_seconds`."""
        sides = {side: [one.expected for one in self.timed if one.side == side] for side in self.report.cells}
        return {
            side: {phase: sum(one.modelled[phase] for one in found) for phase in self.report.timed_phases}
            for side, found in sides.items()
        }
