"""What a calibration found, as text: errors before and after by phase, start-up, efficiency by tier."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from planner.base import human_seconds
from planner.report.tables import table_of

if TYPE_CHECKING:  # only the command line imports probes at run time
    from probes.calibration.outcome import CalibrationOutcome

NAMES = ("phase", "settings", "error before", "after", "on settings left out", "start-up")


def calibration_report(outcome: "CalibrationOutcome") -> RenderableType:
    rows = [
        (
            one.phase,
            str(one.fitted.settings),
            f"{one.before:.1%}",
            f"{one.fitted.error:.1%}",
            f"{one.fitted.held_out_error:.1%}",
            human_seconds(one.fitted.start_seconds),
        )
        for one in outcome.judged
    ]
    lines = []
    for one in outcome.judged:
        reached = ", ".join(f"{tier.efficiency:.1%} of {tier.tier}" for tier in one.fitted.reached)
        unseen = f"; not seen, kept as it was: {', '.join(one.fitted.unseen)}" if one.fitted.unseen else ""
        lines.append(f"{one.phase}: messages reach {reached}{unseen}")
    lines += [f"{phase}: not calibrated: {reason}" for phase, reason in outcome.refused.items()]
    phase = outcome.calibration.phases[0]
    title = f"{phase.transport} over {outcome.calibration.backend} on {phase.machine}: mean relative errors"
    return Group(table_of(NAMES, rows, words=("phase",), title=title), Text("\n".join(lines)))
