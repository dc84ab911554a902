"""Redundant experts that vLLM does not take, whatever the phase and the machine."""

from planner.engines.vllm.backend import WHEEL
from planner.engines.vllm.kernels import NEITHER, kernels_of
from planner.engines.vllm.models import BALANCED
from planner.model import ModelSpec
from planner.problem import Violation

MOST_REDUNDANT = 1023


def map_limits(model: ModelSpec, slots: int) -> list[Violation]:
    """What the redundant experts of a map break, whatever the phase and the machine."""
    found, redundant = [], slots - model.experts
    if redundant > MOST_REDUNDANT:
        text = f"vLLM takes up to {MOST_REDUNDANT} redundant experts, not {redundant}"
        found.append(Violation("redundant", text))
    if redundant and why_never_balanced(model):
        found.append(Violation("redundant", without_balancer(why_never_balanced(model))))
    return found


def why_never_balanced(model: ModelSpec) -> str:
    """Why vLLM moves no experts of this model, whatever the phase and the machine; empty where it may."""
    kernels = kernels_of(model)
    if model.architecture not in BALANCED:
        return f"has no expert balancer for {model.architecture}"
    if kernels is not None and kernels.balanced == NEITHER:
        return f"has no expert balancer for {kernels.name}"
    return ""


def without_balancer(why: str) -> str:
    """The refusal of redundant experts where nothing would move them."""
    return f"{WHEEL} {why}, and redundant experts only with it; use --redundant 0"
