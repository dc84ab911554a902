"""How often the verdict is right, over many seeds: `python -m tests.probes.dispatch.verdict.rates`.

Prints the figures of docs/validating.md; some minutes.
"""

import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from probes.dispatch.seen import PHASES
from probes.dispatch.timed import Timed
from probes.dispatch.verdict import LawError, judge_speed
from tests.probes.dispatch.verdict.runs import Machine, make_timed, make_topology

TOLD = make_topology()
LAW = dict.fromkeys(PHASES, LawError(0.10, "stated"))
TRAFFICS, SEEDS = 3, 100
FAULTS = {
    "a NIC at 25 %": (Machine(TOLD, {"node1/nic0": 0.25}), {}),
    "a NIC at 50 %": (Machine(TOLD, {"node2/nic1": 0.5}), {}),
    "NVLink at 10 %": (Machine(TOLD, {"node1/gpu0/nvlink": 0.1}), {"inside": 4.0}),
    "a busy rank": (Machine(TOLD, busy={3: 3.0}), {}),
    "all NICs at 60 %": (Machine(TOLD, {"nic": 0.6}), {}),
    "uplinks 2:1": (Machine(make_topology(oversubscription=2.0)), {"skew": 0.1}),
    "ranks 1 and 2 swapped": (Machine(TOLD, place_G=[0, 2, 1, 3, 4, 5, 6, 7]), {"inside": 4.0}),
    "ranks dealt in turn": (Machine(TOLD, place_G=[0, 2, 4, 6, 1, 3, 5, 7]), {"inside": 4.0}),
    "0.5 s more start-up": (Machine(TOLD, late=0.5), {}),
}


def noisy(timed: list[Timed], seed: int, noise: float) -> list[Timed]:
    """The same run again, with other noise."""
    rng = np.random.default_rng(seed)
    return [
        replace(
            one,
            seconds_GN={
                phase: seconds_GN * rng.lognormal(0, noise, seconds_GN.shape[1])
                for phase, seconds_GN in one.seconds_GN.items()
            },
        )
        for one in timed
    ]


def sound_runs(noise: float, repeats: int) -> tuple[Counter[str], float]:
    """States of runs of a sound machine, and how often the interval of the gain holds the true one."""
    states: Counter[str] = Counter()
    held = []
    for traffic in range(TRAFFICS):
        clean = make_timed(TOLD, Machine(TOLD, noise=0.0), seed=traffic, repeats=repeats)
        true = judge_speed(clean, TOLD, LAW).gains[-1].measured
        for seed in range(SEEDS):
            verdict = judge_speed(noisy(clean, SEEDS * traffic + seed, noise), TOLD, LAW)
            states[verdict.state] += 1
            held.append(verdict.gains[-1].low <= true <= verdict.gains[-1].high)
    return states, float(np.mean(held))


def named(fault: str, seed: int) -> str:
    """What is named first, where something is."""
    machine, traffic = FAULTS[fault]
    verdict = judge_speed(make_timed(TOLD, machine, seed=seed, **traffic), TOLD, LAW)  # type: ignore[arg-type]
    if verdict.cause is None:
        return f"nothing ({verdict.state})"
    best = verdict.cause.best
    figure = f" at {best.x:.2f}" if best.suspect.free else ""
    return f"{best.suspect.kind} {best.suspect.what}{figure}"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    for noise in (0.03, 0.06, 0.12):
        for repeats in (3, 5, 10):
            states, held = sound_runs(noise, repeats)
            say(f"sound, noise {noise:.0%}, {repeats} repeats: {dict(states)}; true gain held {held:.1%}")
    for fault in FAULTS:
        say(f"{fault}: {'; '.join(named(fault, seed) for seed in range(4))}")


if __name__ == "__main__":
    main()
