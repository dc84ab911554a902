"""What others' benchmarks measured of a plan's traffic, as text: the gain first, then every run."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from planner.base import human_seconds
from planner.exchange import Gain, Held, gains
from planner.report.tables import table_of

NAMES = ("layer", "phase", "side", "tool", "measured", "predicted", "error", "predicted to wait for")
WORDS = ("phase", "side", "tool", "predicted to wait for")


def exchange_report(held: Sequence[Held]) -> RenderableType:
    rows = [
        (
            str(one.written.layer),
            _phase(one.written.phase, one.written.hop),
            one.written.side,
            one.run.tool,
            human_seconds(one.run.seconds),
            human_seconds(one.written.predicted_seconds),
            f"{one.error:+.1%}",
            one.written.bottleneck,
        )
        for one in held
    ]
    lines = [Text(_gain(one)) for one in gains(held)]
    title = "Each matrix as it was run; error: predicted / measured - 1"
    return Group(*lines, table_of(NAMES, rows, words=WORDS, title=title))


def _gain(gain: Gain) -> str:
    what = f"Layer {gain.layer}, {_phase(gain.phase, gain.hop)}, {gain.tool}"
    return (
        f"{what}: the plan takes {gain.measured:.3f} of the default's time, predicted {gain.predicted:.3f} "
        f"({gain.error:+.1%})"
    )


def _phase(phase: str, hop: str) -> str:
    return f"{phase} {hop}".strip()
