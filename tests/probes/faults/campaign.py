"""Random faults, many of them, by hand: `python -m tests.probes.faults.campaign COUNT [SEED] [RANKS]`.

Each run is drawn: the way it is started, what goes wrong, in which rank and phase. A run is in order when all
programs ended in time, whoever was not hurt said one line, and nothing is left. Prints a line a run and a
table of kinds.
"""

import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from probes.emulation.namespaces import unavailable
from tests.probes.faults.runs import Run, running
from tests.probes.faults.task import LAUNCHED_PHASES, LOCAL_PHASES, SIGNALS, Fault

LIMIT_SECONDS = {"local": 40.0, "emulated": 40.0, "launched": 40.0}
LATE_SECONDS = (
    20.0  # 7 for last words; and a busy machine takes long to start Python and torch, before the limit
)
KINDS = ("kill", "term", "stop", "hang", "memory", "refuse", "bug", "cut", "tenth", "parent")


def draw(dice: random.Random, ranks: int) -> tuple[str, Fault]:
    """A way and a fault that can happen in it."""
    ways = ["local", "launched"] + (["emulated"] if unavailable() is None else [])
    way, kind = dice.choice(ways), dice.choice(KINDS)
    if kind in ("cut", "tenth") and way != "emulated":
        kind = "kill"
    if kind == "parent" and way == "launched":
        kind = "kill"
    phases: tuple[str, ...] = LAUNCHED_PHASES if way == "launched" else LOCAL_PHASES
    if kind in ("cut", "tenth"):
        phases = ("preparation", "timing")
    return way, Fault(kind, dice.randrange(ranks), dice.choice(phases))


def verdict(run: Run) -> str:
    """What is not in order; empty where all is."""
    hurt = run.fault.rank if run.way == "launched" and run.fault.kind in SIGNALS else None
    wrong = []
    for number, program in enumerate(run.programs):
        if number == hurt:
            continue
        if program.process.returncode is None:
            wrong.append(f"program {number} hangs")
        elif run.fault.kind != "parent" and (program.code, run.fault.kind) != (0, "tenth"):
            told = len(program.lines) == 1 or run.fault.kind == "bug"
            wrong += (
                [] if told and program.code > 0 else [f"program {number}: exit {program.code}: {program.err}"]
            )
        late = run.begun + program.seconds - (program.begun or run.begun) - run.seconds
        if late > LATE_SECONDS:
            wrong.append(f"program {number} ended {late:.0f} s after its limit")
    if hurt is not None:
        run.programs[hurt].process.kill()  # a stopped one of a launcher's is the launcher's to end
        run.programs[hurt].finish(10)
    return "; ".join([*wrong, *(f"left: {left}" for left in run.left())])


def play(way: str, fault: Fault, ranks: int) -> tuple[str, float, str]:
    """What is wrong, the seconds it took, and what was said first."""
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as name,
        running(way, fault, Path(name), ranks=ranks, seconds=LIMIT_SECONDS[way]) as run,
    ):
        run.start()
        if fault.kind == "parent":
            run.wait_for_phase(fault.rank, fault.phase)
            run.programs[0].process.kill()
        hurt = fault.rank if way == "launched" and fault.kind in SIGNALS else None
        for number, program in enumerate(run.programs):
            if number != hurt:
                program.finish(run.seconds + 60)
                program.seconds = time.monotonic() - run.begun
        said = next((line for program in run.programs for line in program.lines), "")
        return verdict(run), max(program.seconds for program in run.programs), said


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(count: int, seed: int = 0, ranks: int = 2) -> int:
    dice = random.Random(seed)
    table: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for number in range(count):
        way, fault = draw(dice, ranks)
        wrong, seconds, said = play(way, fault, ranks)
        table[fault.kind].append((wrong, seconds))
        came = " | ".join(filter(None, (wrong, said[:120]))) or "ok"
        tell(f"{number:3} {way:9} {fault!s:40} {seconds:5.1f} s  {came}")
    tell(f"\n{'kind':8} {'runs':>5} {'wrong':>6} {'longest':>9}")
    for kind, runs in sorted(table.items()):
        bad = sum(bool(wrong) for wrong, _ in runs)
        tell(f"{kind:8} {len(runs):5} {bad:6} {max(seconds for _, seconds in runs):7.1f} s")
    bad = sum(bool(wrong) for runs in table.values() for wrong, _ in runs)
    tell(f"{count} faults, {bad} not in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
