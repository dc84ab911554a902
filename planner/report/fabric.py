"""What a machine was checked for: whether its fabric is good enough, then everything found wrong with it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from planner.base import human_bandwidth, human_bytes, human_seconds
from planner.planning import GOOD_ENOUGH, Diagnosis, FabricVerdict, Fault, Reading, sentence
from planner.report.tables import FOLDED, table_of
from planner.topology import MEASURED_OTHERWISE


def check_report(diagnosis: Diagnosis, notes: Sequence[str] = ()) -> RenderableType:
    """The verdict, then a table of findings."""
    what = dict.fromkeys(fault.what for fault in diagnosis.faults)
    short = [one.removeprefix(MEASURED_OTHERWISE) for one in what if one.startswith(MEASURED_OTHERWISE)]
    lines = [*(f"Not as stated: {one}, too few sizes" for one in short), *verdict_lines(diagnosis.verdict)]
    told = [f"Note: {note}" for note in notes]
    seconds = f"Seconds are predicted; {diagnosis.verdict.error}"
    return Group(Text("\n".join([*lines, *told])), findings_table(diagnosis.faults), Text(seconds))


def verdict_lines(verdict: FabricVerdict) -> list[str]:
    """The answer; then, where something departs, what else it may be, how to tell, what to do."""
    lines, worst = [sentence(verdict)], verdict.worst
    if verdict.design is not None and verdict.whole.share >= GOOD_ENOUGH:
        lines += [f"To do: {verdict.design.remedy}"]
    if worst is None:
        how = "run nccl-tests' alltoall_perf, then: moeplan topology check MACHINE alltoall.log"
        moving = f"Dispatch and combine are {100 * verdict.moving_share:.0f} % of the step"
        return lines if verdict.domains == 1 else [*lines, f"{moving}. To measure: {how}"]
    if worst.causes:
        likeliest, *others = worst.causes
        lines += [f"To be sure: {likeliest.test}", f"To do: {likeliest.remedy}"]
        lines += [f"It may also be: {' '.join(cause.name for cause in others)}"] if others else []
    return [*lines, *filter(None, [_at_step(worst)])]


def _at_step(reading: Reading) -> str:
    """What the benchmark says of messages as small as the step's."""
    at, nic = reading.at_step, reading.seen
    if at is None:
        return ""
    size = f"At the step's {human_bytes(at.peer_bytes)} a peer"
    if at.seconds is None or at.bytes_per_s is None:
        return f"{size}: smaller than every size of the benchmark; measure smaller ones"
    share = 100 * at.bytes_per_s / nic.stated.bytes_per_s
    told = f"{size}: {human_bandwidth(at.bytes_per_s)} ({share:.0f} %), {human_seconds(at.seconds)}"
    if at.start_seconds is None:
        return told
    start = human_seconds(min(at.start_seconds, at.seconds))
    return f"{told}, {start} of it NCCL's start-up, which engines' kernels shorten"


def findings_table(findings: Sequence[Fault]) -> RenderableType:
    """What was found wrong: what, what it costs, what to do."""
    if not findings:
        return Text("nothing else found")
    rows = [(finding.where, finding.what, finding.cost or "-", finding.remedy) for finding in findings]
    names = ("where", "what", "what it costs", "what to do")
    return table_of(names, rows, words=names, columns=FOLDED, title="Findings", show_lines=True)


def check_to_dict(diagnosis: Diagnosis, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Verdict and findings as plain data; rates in bytes/s, costs in seconds of a step."""
    verdict = diagnosis.verdict
    return {
        "verdict": {
            "sentence": sentence(verdict),
            "good_enough": verdict.good,
            "good_enough_below": GOOD_ENOUGH,
            "cost_share": verdict.whole.share,
            "cost_seconds": verdict.whole.lost_seconds,
            "step_seconds": verdict.whole.seconds,
            "step_seconds_error": verdict.error,
            "by_design": verdict.design and verdict.design.what,
            "dispatch_and_combine_share": verdict.moving_share,
            "readings": [_reading(one) for one in verdict.readings],
        },
        "findings": [asdict(finding) for finding in diagnosis.faults],
        "notes": list(notes),
    }


def _reading(reading: Reading) -> dict[str, Any]:
    first = reading.causes[0] if reading.causes else None
    return {
        **reading.seen.to_dict(),
        "scope": reading.seen.run.scope if reading.seen.run else None,
        "cost_seconds": reading.loss.lost_seconds,
        "cause": first and first.name,
        "test": first and first.test,
        "remedy": first and first.remedy,
        "causes": [asdict(cause) for cause in reading.causes],
        "at_step": asdict(reading.at_step) if reading.at_step else None,
    }
