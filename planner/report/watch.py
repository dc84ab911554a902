"""A round of `watch` in lines: what came, what follows, what was written; and the same as plain values."""

from typing import Any

from planner.base import human_seconds
from planner.watching import Round


def round_lines(found: Round, number: int) -> list[str]:
    """One line, and one for everything that must be known besides."""
    lines = [f"note: {' '.join(line.split())}" for line in found.said]
    came = f"{found.heard} new window{'s' if found.heard != 1 else ''}, {found.number} in all"
    if found.look is None:
        return [*lines, f"round {number}: {came}; {_why_not(found)}"]
    seen = found.look
    lines.append(f"round {number}: {came}; {seen.verdict.text()}")
    if found.wrote is not None and seen.plan.moves is not None:
        moves = seen.plan.moves
        what = f"{moves.moved:,} of {moves.slots:,} slots move ({moves.share:.1%})"
        lines.append(f"wrote {found.wrote}: {what}, {human_seconds(moves.seconds)} of the links")
    if found.handed_over:
        lines.append("the engine was handed the new map")
    return lines


def _why_not(found: Round) -> str:
    if not found.number:
        return "nothing was heard yet"
    if not found.heard:
        return "nothing to look at"
    return "the last swap is still open"


def round_to_dict(found: Round, number: int) -> dict[str, Any]:
    """Plain values, a line of JSON a round."""
    seen = found.look
    verdict = seen.verdict if seen else None
    return {
        "round": number,
        "new_windows": found.heard,
        "windows": found.number,
        "pays": verdict.pays if verdict else None,
        "gain": verdict.gain if verdict else None,
        "step_seconds": verdict.step_seconds if verdict else None,
        "saved_seconds_a_step": verdict.saved_seconds if verdict else None,
        "swap_seconds": verdict.swap_seconds if verdict else None,
        "steps_in_horizon": verdict.steps if verdict else None,
        "trust": verdict.trust if verdict else None,
        "present_since_window": seen.present if seen else None,
        "moved_share": seen.plan.moves.share if seen and seen.plan.moves else None,
        "wrote": str(found.wrote) if found.wrote else None,
        "handed_over": found.handed_over,
        "signals": dict(found.signals),
        "said": list(found.said),
    }
