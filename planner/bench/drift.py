"""Shift: every step the load drifts and a plan is made on what was just seen.

It is judged on the step after, and every moved slot counts.

Shapes: T steps, L layers, E experts, P slots; D drawn next windows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.bench.frame import Peers, Policy, Table, each
from planner.placement import Placement
from planner.plan import moves_L
from planner.problem import row_violations
from planner.solvers import Progress, balance, candidates, move_replicas, pack, peaks, replicate

TITLE = (
    "Drift: log-loads AR(1) of sigma 1; planned on step t, balance (mean / busiest GPU) on t and t + 1; "
    "moved = slots with an expert new to their GPU"
)
LAYERS, EXPERTS, GPUS, SLOTS = 58, 256, 32, 288
STEPS = 8
# Next windows drawn from each step, of which the series follows the first: one alone is luck by 0.002
DRAWS = 12
RHOS = (0.99, 0.95)
SHARES = (0.03, 0.07, 0.15)  # of the slots, that a warm re-plan may move at each step

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Replan = Callable[[Floats, Floats, Ints], Ints]
"""expert_LP = replan(share_LE of the step before, share_LE now, expert_LP that runs)"""


@dataclass(frozen=True, eq=False)
class Series:
    """share_TLE, and what each step may be followed by, next_TDLE."""

    share_TLE: Floats
    next_TDLE: Floats


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Everyone starts from the same balanced plan and re-plans at every step.

    One round of the series, however many `repeats`: its steps are repeats.
    """
    del repeats
    rows: list[dict[str, object]] = []
    for rho in each(RHOS, progress, lambda rho: f"rho {rho}"):
        series = drawn(rho, STEPS, (LAYERS, EXPERTS))
        start_LP = _from_nothing(series.share_TLE[0], GPUS, SLOTS)
        instance = f"{LAYERS}x{EXPERTS} -> {SLOTS} / {GPUS} GPUs, rho {rho}"
        for name, replan in _replanners(peers).items():
            figures = _followed(series, start_LP, GPUS, replan)
            rows.append({"instance": instance, "method": name, **figures})
    notes = (
        f"means over {STEPS} steps and {DRAWS} draws of the next one; seconds: median of the steps",
        "warm: drift is measured between the last two steps",
    )
    return Table(TITLE, tuple(rows), notes)


def drawn(rho: float, steps: int, shape: tuple[int, int], seed: int = 0) -> Series:
    """Steps 0 to `steps`; log-loads stay normal with sigma 1, each rho times the one before plus noise."""
    random = np.random.default_rng(seed)
    log_LE = random.normal(0, 1, shape)
    now, following = [], []
    for _ in range(steps + 1):
        next_DLE = rho * log_LE + np.sqrt(1 - rho**2) * random.normal(0, 1, (DRAWS, *shape))
        now.append(_shares(log_LE))
        following.append(_shares(next_DLE))
        log_LE = next_DLE[0]
    return Series(np.array(now), np.array(following))


def _replanners(peers: Peers) -> dict[str, Replan]:
    found: dict[str, Replan] = {"keep the first plan": lambda _, __, expert_LP: expert_LP}
    found |= {name: _anew(policy) for name, policy in peers.policies.items()}
    found["refine, from nothing"] = lambda _, share_LE, __: _from_nothing(share_LE, GPUS, SLOTS)
    for share in SHARES:
        found[f"warm, at most {share:.0%} moved"] = _warm(share)
    return found


def _anew(policy: Policy) -> Replan:
    """The peer's plan from nothing; it gets counts."""
    return lambda _, share_LE, __: policy(share_LE * 1e9, SLOTS, 1, 1, GPUS)


def _warm(share: float) -> Replan:
    def replan(before_LE: Floats, share_LE: Floats, expert_LP: Ints) -> Ints:
        drift_L = np.sqrt(((share_LE - before_LE) ** 2).sum(axis=1) / (share_LE**2).sum(axis=1))
        most = int(share * expert_LP.size)
        return candidates(share_LE, expert_LP, GPUS, drift_L, most).within(most)

    return replan


class _Step(NamedTuple):
    """Balance on the window planned for and the next, slots moved, seconds that planning took."""

    planned: float
    next: float
    moved_share: float
    seconds: float
    valid: bool


def _followed(series: Series, start_LP: Ints, gpus: int, replan: Replan) -> dict[str, object]:
    """Figures of one way to re-plan, from step 1 on."""
    expert_LP, steps = start_LP, []
    loads = zip(series.share_TLE[:-1], series.share_TLE[1:], series.next_TDLE[1:], strict=True)
    for before_LE, share_LE, next_DLE in loads:
        began = time.perf_counter()
        found_LP = replan(before_LE, share_LE, expert_LP)
        seconds = time.perf_counter() - began
        after = float(np.mean([_balance(next_LE, found_LP, gpus) for next_LE in next_DLE]))
        planned, moved = _balance(share_LE, found_LP, gpus), _moved(expert_LP, found_LP, gpus)
        valid = _valid(found_LP, share_LE.shape[1], gpus)
        steps.append(_Step(planned, after, moved, seconds, valid))
        expert_LP = found_LP
    moved_shares = [step.moved_share for step in steps]
    return {
        "balance_planned": float(np.mean([step.planned for step in steps])),
        "balance_next": float(np.mean([step.next for step in steps])),
        "moved_share": float(np.mean(moved_shares)),
        "most_moved_share": float(np.max(moved_shares)),
        "seconds": float(np.median([step.seconds for step in steps])),
        "valid": all(step.valid for step in steps),
    }


def _balance(share_LE: Floats, expert_LP: Ints, gpus: int) -> float:
    """Mean GPU load over the busiest GPU's, both summed over layers: what time follows."""
    return float(len(share_LE) / (peaks(share_LE, expert_LP, gpus).sum() * gpus))


def _moved(old_LP: Ints, new_LP: Ints, gpus: int) -> float:
    layer_ids = tuple(range(len(old_LP)))
    old, new = Placement(old_LP, layer_ids, gpus), Placement(new_LP, layer_ids, gpus)
    return float(moves_L(old, new).sum() / old_LP.size)


def _valid(expert_LP: Ints, experts: int, gpus: int) -> bool:
    return not any(row_violations(expert_LP, tuple(range(len(expert_LP))), experts, gpus))


def _from_nothing(share_LE: Floats, gpus: int, slots: int) -> Ints:
    """What the method `refine` does under even split."""
    packed_LP = pack(share_LE, replicate(share_LE, slots, gpus), gpus)
    return move_replicas(share_LE, balance(share_LE, packed_LP, gpus), gpus, gpus)


def _shares(log: Floats) -> Floats:
    load = np.exp(log)
    shares: Floats = load / load.sum(axis=-1, keepdims=True)
    return shares
