"""What a benchmark measured of the matrices, beside what the cost model says of the same bytes. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.base import BadInput
from planner.exchange.commands import NCCL
from planner.exchange.folder import Traffic, Written
from planner.exchange.sides import DEFAULT, PLAN

NAMES = ("side", "layer", "phase", "hop", "bottleneck")  # of what was written, beside its figures


@dataclass(frozen=True)
class Run:
    """One result of a benchmark. `size_bytes`: as it prints it; `ranks` 0 where it does not say."""

    source: str
    tool: str
    size_bytes: int
    seconds: float  # of the slowest rank where the tool was asked for it
    ranks: int = 0


@dataclass(frozen=True)
class Held:
    """A run beside the prediction for its matrix."""

    run: Run
    written: Written

    @property
    def error(self) -> float:
        """Predicted over measured, less 1: below 0 where the prediction was too short."""
        return self.written.predicted_seconds / self.run.seconds - 1


@dataclass(frozen=True)
class Gain:
    """The plan's time over the default's for one exchange, both measured by one tool."""

    tool: str
    layer: int
    phase: str
    hop: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def hold(traffic: Traffic, written: Written, run: Run) -> Held:
    """BadInput where the run cannot have been of that matrix."""
    if run.ranks not in (0, traffic.ranks):
        raise BadInput(f"{run.source}: ran over {run.ranks} ranks, and the plan is for {traffic.ranks} GPUs")
    size = written.largest_rank_bytes if run.tool == NCCL else written.rank_0_bytes
    if run.size_bytes != size:
        raise BadInput(
            f"{run.source}: its size is {run.size_bytes} bytes, the matrix of {written.folder} gives {size}: "
            "it ran another matrix, or with another MATRIX_SCALE or element size"
        )
    return Held(run, written)


def gains(held: Iterable[Held]) -> list[Gain]:
    """Of every exchange that was measured for plan and default; the quickest run of each counts."""
    quickest: dict[tuple[str, int, str, str], dict[str, Held]] = {}
    for one in held:
        written = one.written
        by_side = quickest.setdefault((one.run.tool, written.layer, written.phase, written.hop), {})
        known = by_side.get(written.side)
        if known is None or one.run.seconds < known.run.seconds:
            by_side[written.side] = one
    return [
        Gain(*key, *_ratios(by_side[PLAN], by_side[DEFAULT]))
        for key, by_side in quickest.items()
        if {PLAN, DEFAULT} <= set(by_side)
    ]


def _ratios(plan: Held, default: Held) -> tuple[float, float]:
    predicted = plan.written.predicted_seconds / default.written.predicted_seconds
    return plan.run.seconds / default.run.seconds, predicted


def held_to_dict(held: Sequence[Held]) -> dict[str, object]:
    return {
        "exchanges": [
            {
                "file": one.run.source,
                "tool": one.run.tool,
                **{name: getattr(one.written, name) for name in NAMES},
                "measured_seconds": one.run.seconds,
                "predicted_seconds": one.written.predicted_seconds,
                "predicted_over_measured": one.error + 1,
            }
            for one in held
        ],
        "plan_over_default": [
            {
                "tool": one.tool, "layer": one.layer, "phase": one.phase, "hop": one.hop,
                "measured": one.measured, "predicted": one.predicted,
            }
            for one in gains(held)
        ],
    }  # fmt: skip
