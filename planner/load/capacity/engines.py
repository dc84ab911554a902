"""Engines with a capacity factor: how many assignments one expert takes, and the flags that say so."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.model import ModelSpec

DEEPSPEED_LEAST = 4  # min_capacity


@dataclass(frozen=True)
class CapacityEngine:
    """An engine that drops what an expert cannot take.

    `capacity(tokens, model, factor)`: assignments that one expert takes from one source rank;
    `flags(model, ep, factor)`: how it is told.
    """

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
    return (
        f"--num-experts {model.experts} --moe-router-topk {model.top_k} "
        f"--expert-model-parallel-size {ep} --moe-expert-capacity-factor {factor:g}"
    )


def _deepspeed_flags(model: ModelSpec, ep: int, factor: float) -> str:
    sizes = f"num_experts={model.experts}, ep_size={ep}, k={model.top_k}"
    factors = f"capacity_factor={factor:g}, eval_capacity_factor={factor:g}"
    return f"MoE(..., {sizes}, {factors}, min_capacity={DEEPSPEED_LEAST}, drop_tokens=True)"


def _tutel_flags(model: ModelSpec, ep: int, factor: float) -> str:
    gate = f"{{'type': 'top', 'k': {model.top_k}, 'capacity_factor': {factor:g}}}"
    experts = f"{{'num_experts_per_device': {model.experts // ep}, ...}}"
    return f"moe_layer(gate_type={gate}, experts={experts}, ...)"


ENGINES = (  # formulas read in the releases named; none was run
    CapacityEngine("megatron", "Megatron-Core 0.19.2", _megatron, _megatron_flags),
    CapacityEngine("deepspeed", "DeepSpeed 0.19.8", _deepspeed, _deepspeed_flags),
    CapacityEngine("tutel", "Tutel (commit ac0e51b)", _tutel, _tutel_flags),
)
