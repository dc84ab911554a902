"""Engines with a capacity factor drop what an expert cannot take: how much, for a measured load.

Capacity is counted on each source rank by itself, so it does not depend on the EP size. The tokens of a step
are taken for independent draws from a window's shares: then an expert's assignments are binomial, and the
expected drop is exact. Real batches hang together, and drop no less on average.
Shapes: W windows, L layers, E experts.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible
from planner.load.capacity.engines import ENGINES, CapacityEngine
from planner.load.capacity.report import CapacityReport, Drop, EngineDrops
from planner.load.profile import LoadProfile
from planner.model import ModelSpec

FACTORS = (1.0, 1.25, 1.5, 2.0, 4.0)
STEP = 100  # factors are searched in hundredths
MOST_WINDOWS = 16  # consecutive windows beyond are joined, which hides how they differ
Shares = npt.NDArray[np.float64]


def capacity_report(
    model: ModelSpec, load: LoadProfile, ep: int, tokens: int, target: float | None = None
) -> CapacityReport:
    """Drops of every engine by factor.

    BadInput for an EP size that does not divide the experts, Infeasible for a target that no factor keeps.
    """
    _check_question(model, ep, tokens, target)
    share_WLE, weight_WL, joined = _window_shares(load)
    assignments = tokens * model.top_k

    def drop(engine: CapacityEngine, factor: float) -> Drop:
        capacity = engine.capacity(tokens, model, factor)
        dropped_L = (weight_WL * dropped_share(share_WLE, tokens, model.top_k, capacity)).sum(axis=0)
        return Drop(factor, capacity, tuple(dropped_L.tolist()), capacity * model.experts / assignments)

    engines = []
    for engine in ENGINES:
        chosen = _least(engine, model, tokens, target, drop) if target is not None else None
        flags = engine.flags(model, ep, chosen.factor) if chosen else None
        engines.append(EngineDrops(engine, tuple(drop(engine, factor) for factor in FACTORS), chosen, flags))
    expected = (
        "expected values: the tokens of a step are taken for independent draws from each window's shares"
    )
    notes = (expected, *joined, *load.notes)
    return CapacityReport(load.layer_ids, tokens, target, tuple(engines), notes)


def _check_question(model: ModelSpec, ep: int, tokens: int, target: float | None) -> None:
    if ep < 1 or model.experts % ep:
        sizes = ", ".join(str(size) for size in range(1, model.experts + 1) if model.experts % size == 0)
        raise BadInput(
            f"--ep {ep}: these engines place {model.experts} experts in equal blocks without replicas; "
            f"use one of {sizes}"
        )
    if tokens < 1:
        raise BadInput(f"--tokens-per-rank {tokens}: it must be at least 1")
    if target is not None and not 0 < target < 1:
        raise BadInput(f"--target {target:g}: give a share between 0 and 1, like 0.1%")


def dropped_share(share_WLE: Shares, tokens: int, top_k: int, capacity: int) -> Shares:
    """Expected share [W, L] of a rank's assignments beyond `capacity` on their expert.

    An expert gets Binomial(tokens, top_k * share) assignments, for a token chooses it at most once;
    E[(X-C)+] = E[X] - C + E[(C-X)+].
    """
    chance_WLE = np.clip(share_WLE * top_k, 0, 1)
    if capacity >= tokens:
        return np.zeros(share_WLE.shape[:2])
    inside_WLE = np.clip(chance_WLE, 1e-300, 1 - 1e-15)
    log_p, log_q = np.log(inside_WLE), np.log1p(-inside_WLE)
    spare_WLE = np.zeros_like(chance_WLE)
    for count in range(capacity):
        ways = math.lgamma(tokens + 1) - math.lgamma(count + 1) - math.lgamma(tokens - count + 1)
        spare_WLE += (capacity - count) * np.exp(ways + count * log_p + (tokens - count) * log_q)
    over_WLE = np.maximum(tokens * chance_WLE - capacity + spare_WLE, 0)
    return np.asarray(over_WLE.sum(axis=2) / (tokens * top_k), dtype=np.float64)


def parse_share(text: str) -> float:
    """
    >>> parse_share("0.1%"), parse_share("0.05")
    (0.001, 0.05)
    """
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise BadInput(f"--target {text!r} is not a share; write it like 0.1% or 0.001") from None


def _least(
    engine: CapacityEngine,
    model: ModelSpec,
    tokens: int,
    target: float,
    drop: Callable[[CapacityEngine, float], Drop],
) -> Drop:
    """Capacity never falls as the factor grows, so the least factor can be found by halving."""
    low, high = 0, STEP
    while drop(engine, high / STEP).worst > target:
        low, high = high, high * 2
        if engine.capacity(tokens, model, low / STEP) >= tokens:
            raise Infeasible(
                f"no factor keeps the drop of {engine.title} within {target:.3%}; "
                "leave the factor out, which drops nothing"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if drop(engine, middle / STEP).worst <= target else (middle, high)
    return drop(engine, high / STEP)


def _window_shares(load: LoadProfile) -> tuple[Shares, Shares, Sequence[str]]:
    """Shares [W, L, E], each window's weight in its layer [W, L], and a note where windows were joined.

    A layer without signal is even.
    """
    count = min(load.windows, MOST_WINDOWS)
    starts = np.unique(np.linspace(0, load.windows, count, endpoint=False).astype(int))
    counts_WLE = np.add.reduceat(load.tokens_WLE, starts, axis=0).astype(np.float64)
    sums_WL = counts_WLE.sum(axis=2)
    sums_WL1 = sums_WL[..., None]
    share_WLE = np.where(sums_WL1 > 0, counts_WLE / np.maximum(sums_WL1, 1), 1 / load.experts)
    total_L = sums_WL.sum(axis=0)
    weight_WL = np.where(total_L > 0, sums_WL / np.maximum(total_L, 1), 1 / len(starts))
    joined = [f"{load.windows} windows were joined to {len(starts)}"] if len(starts) < load.windows else []
    return share_WLE, weight_WL, joined
