"""Engines with a capacity factor drop what an expert cannot take: how much, for a measured load.

Capacity is counted on each source rank by itself, so it does not depend on the EP size. The tokens of a step are taken for independent draws from a window's
shares: then an expert's assignments are binomial, and the expected drop is exact. Real batches hang together, and drop no less on average.

Shapes: W windows, L layers, E experts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible
from planner.load.profile import LoadProfile
from planner.model import ModelSpec

FACTORS = (1.0, 1.25, 1.5, 2.0, 4.0)
STEP = 100  # factors are searched in hundredths
MOST_WINDOWS = 16  # consecutive windows beyond are joined, which hides how they differ
DEEPSPEED_LEAST = 4  # min_capacity
Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CapacityEngine:
    """`capacity(tokens, model, factor)`: assignments that one expert takes from one source rank; `flags(model, ep, factor)`: how it is told."""

    name: str
    title: str
    capacity: Callable[[int, ModelSpec, float], int]
    flags: Callable[[ModelSpec, int, float], str]


def _megatron(tokens: int, model: ModelSpec, factor: float) -> int:
    return math.ceil(tokens * model.top_k / model.experts * factor)


def _deepspeed(tokens: int, model: ModelSpec, factor: float) -> int:
    return max(math.ceil(tokens / model.experts * factor * model.top_k), DEEPSPEED_LEAST)


def _tutel(tokens: int, model: ModelSpec, factor: float) -> int:
    return model.top_k * int(factor * math.ceil(tokens / model.experts))


def _megatron_flags(model: ModelSpec, ep: int, factor: float) -> str:
    return f"--num-experts {model.experts} --moe-router-topk {model.top_k} --expert-model-parallel-size {ep} --moe-expert-capacity-factor {factor:g}"


def _deepspeed_flags(model: ModelSpec, ep: int, factor: float) -> str:
    sizes = f"num_experts={model.experts}, ep_size={ep}, k={model.top_k}"
    return f"MoE(..., {sizes}, capacity_factor={factor:g}, eval_capacity_factor={factor:g}, min_capacity={DEEPSPEED_LEAST}, drop_tokens=True)"


def _tutel_flags(model: ModelSpec, ep: int, factor: float) -> str:
    gate = f"{{'type': 'top', 'k': {model.top_k}, 'capacity_factor': {factor:g}}}"
    return (
        f"moe_layer(gate_type={gate}, experts={{'num_experts_per_device': {model.experts // ep}, ...}}, ...)"
    )


ENGINES = (  # formulas read in the releases named; none was run
    CapacityEngine("megatron", "Megatron-Core 0.19.2", _megatron, _megatron_flags),
    CapacityEngine("deepspeed", "DeepSpeed 0.19.8", _deepspeed, _deepspeed_flags),
    CapacityEngine("tutel", "Tutel (commit ac0e51b)", _tutel, _tutel_flags),
)


@dataclass(frozen=True)
class Drop:
    """What one factor drops: shares of a layer's assignments. `padding`: rows an expert's buffers have for each assignment of the step."""

    factor: float
    capacity: int
    dropped_L: tuple[float, ...]
    padding: float

    @property
    def dropped(self) -> float:
        return sum(self.dropped_L) / len(self.dropped_L)

    @property
    def worst(self) -> float:
        return max(self.dropped_L)


@dataclass(frozen=True)
class EngineDrops:
    """One engine's drops by factor, and the least factor that keeps every layer within the target, with the words that set it."""

    engine: CapacityEngine
    by_factor: tuple[Drop, ...]
    chosen: Drop | None
    flags: str | None


@dataclass(frozen=True)
class CapacityReport:
    """The answer of `moeplan capacity`; T tokens a source rank and step."""

    layer_ids: tuple[int, ...]
    tokens: int
    target: float | None
    engines: tuple[EngineDrops, ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        lines = [f"dropped assignments, {self.tokens} tokens a rank and step: mean over layers, worst layer"]
        for found in self.engines:
            lines.append(found.engine.title)
            lines += [
                f"  factor {drop.factor:<5g} capacity {drop.capacity:<6} {self._shares(drop)}"
                for drop in found.by_factor
            ]
            if found.chosen:
                lines += [
                    f"  every layer within {self.target:.3%}: factor {found.chosen.factor:g}, {self._shares(found.chosen)}",
                    f"  {found.flags}",
                ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _shares(self, drop: Drop) -> str:
        return f"{drop.dropped:.3%}, {drop.worst:.3%} (layer {self.layer_ids[drop.dropped_L.index(drop.worst)]}); buffers {drop.padding:.2f} x the load"

    def to_dict(self) -> dict[str, Any]:
        return {
            "tokens_per_rank": self.tokens,
            "layers": list(self.layer_ids),
            "target": self.target,
            "engines": [
                {
                    "engine": found.engine.name,
                    "version": found.engine.title,
                    "factors": [_plain(drop) for drop in found.by_factor],
                    "chosen": _plain(found.chosen) if found.chosen else None,
                    "flags": found.flags,
                }
                for found in self.engines
            ],
            "notes": list(self.notes),
        }


def capacity_report(
    model: ModelSpec, load: LoadProfile, ep: int, tokens: int, target: float | None = None
) -> CapacityReport:
    """Drops of every engine by factor. BadInput for an EP size that does not divide the experts, Infeasible for a target that no factor keeps."""
    if ep < 1 or model.experts % ep:
        sizes = ", ".join(str(size) for size in range(1, model.experts + 1) if model.experts % size == 0)
        raise BadInput(
            f"--ep {ep}: these engines place {model.experts} experts in equal blocks without replicas; use one of {sizes}"
        )
    if tokens < 1:
        raise BadInput(f"--tokens-per-rank {tokens}: it must be at least 1")
    if target is not None and not 0 < target < 1:
        raise BadInput(f"--target {target:g}: give a share between 0 and 1, like 0.1%")
    share_WLE, weight_WL, joined = _window_shares(load)

    def drop(engine: CapacityEngine, factor: float) -> Drop:
        capacity = engine.capacity(tokens, model, factor)
        dropped_L = (weight_WL * dropped_share(share_WLE, tokens, model.top_k, capacity)).sum(axis=0)
        return Drop(
            factor, capacity, tuple(dropped_L.tolist()), capacity * model.experts / (tokens * model.top_k)
        )

    engines = []
    for engine in ENGINES:
        chosen = _least(engine, model, tokens, target, drop) if target is not None else None
        flags = engine.flags(model, ep, chosen.factor) if chosen else None
        engines.append(EngineDrops(engine, tuple(drop(engine, factor) for factor in FACTORS), chosen, flags))
    notes = (
        "expected values: the tokens of a step are taken for independent draws from each window's shares",
        *joined,
        *load.notes,
    )
    return CapacityReport(load.layer_ids, tokens, target, tuple(engines), notes)


def dropped_share(share_WLE: Shares, tokens: int, top_k: int, capacity: int) -> Shares:
    """Expected share [W, L] of a rank's assignments beyond `capacity` on their expert.

    An expert gets Binomial(tokens, top_k * share) assignments, for a token chooses it at most once; E[(X-C)+] = E[X] - C + E[(C-X)+].
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
                f"no factor keeps the drop of {engine.title} within {target:.3%}; leave the factor out, which drops nothing"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if drop(engine, middle / STEP).worst <= target else (middle, high)
    return drop(engine, high / STEP)


def _window_shares(load: LoadProfile) -> tuple[Shares, Shares, Sequence[str]]:
    """Shares [W, L, E], each window's weight in its layer [W, L], and a note where windows were joined. A layer without signal is even."""
    starts = np.unique(
        np.linspace(0, load.windows, min(load.windows, MOST_WINDOWS), endpoint=False).astype(int)
    )
    counts_WLE = np.add.reduceat(load.tokens_WLE, starts, axis=0).astype(np.float64)
    sums_WL = counts_WLE.sum(axis=2)
    share_WLE = np.where(
        sums_WL[..., None] > 0, counts_WLE / np.maximum(sums_WL, 1)[..., None], 1 / load.experts
    )
    total_L = sums_WL.sum(axis=0)
    weight_WL = np.where(total_L > 0, sums_WL / np.maximum(total_L, 1), 1 / len(starts))
    joined = [f"{load.windows} windows were joined to {len(starts)}"] if len(starts) < load.windows else []
    return share_WLE, weight_WL, joined


def _plain(drop: Drop) -> dict[str, Any]:
    shares = {
        "dropped": drop.dropped,
        "worst_layer_dropped": drop.worst,
        "dropped_per_layer": list(drop.dropped_L),
    }
    return {"factor": drop.factor, "capacity": drop.capacity, "padding": drop.padding, **shares}
