"""Terms of a whole step: seconds of each piece of work at the rates of data sheets, before any calibration.

The slowest model of a mixed machine counts. Dispatch, compute and combine are those of the plan's cost.
"""

from math import log2
from typing import NamedTuple

import numpy as np

from planner.cost.priced import Cost
from planner.cost.whole.asked import Asked
from planner.cost.whole.attention import read_bytes, scores_flops
from planner.cost.whole.machine import Machine
from planner.model import KV_BYTES, body_parts
from planner.problem import Problem

MICROSECOND, MILLISECOND = 1e-6, 1e-3  # units of the terms that no data sheet states
TERMS = {  # and the part of a step that each is of
    "projections": "attention",  # its weights
    "cache": "attention",  # KV cache and states, read
    "scores": "attention",  # tokens against their context
    "joins": "attention",  # start-up of the all-reduces of its tensor parallelism: 1 us a doubling
    "joined": "attention",  # their bytes
    "dense": "dense",
    "shared": "shared",  # shared experts and routers
    "head": "head",
    "dispatch": "dispatch",
    "compute": "compute",
    "combine": "combine",
    "prompts": "prompts",  # prompt tokens beside decoding
    "layers": "overhead",  # launches: 1 us a layer
    "waits": "overhead",  # attention groups for one another: 1 us a layer and doubling
    "step": "overhead",  # scheduler and sampling: 1 ms
    "requests": "overhead",  # bookkeeping: 1 us a request of a group, each of which has its own scheduler
}
PARTS = tuple(dict.fromkeys(TERMS.values()))


class MoeSeconds(NamedTuple):
    """Seconds of all MoE layers of a step."""

    dispatch: float
    compute: float
    combine: float


def moe_seconds(problem: Problem, cost: Cost) -> MoeSeconds:
    """What a plan's cost says of them; draft layers are left out."""
    kept_L = np.isin(cost.layer_ids, problem.model.moe_layer_ids)
    parts = (cost.dispatch_seconds_L, cost.compute_seconds_L, cost.combine_seconds_L)
    return MoeSeconds(*(float(part_L[kept_L].sum()) for part_L in parts))


def step_terms(problem: Problem, asked: Asked, moe: MoeSeconds) -> dict[str, float]:
    """Seconds of each of TERMS in one step."""
    machine, parts = Machine(problem), body_parts(asked.model, asked.attention_tp)

    def gemm(part: str) -> float:
        one = parts[part]
        return machine.gemm_seconds(one.weights, one.size_bytes, one.dtype, asked.tokens)

    head = asked.body.vocabulary * asked.model.hidden / asked.attention_tp
    layers = asked.model.layers * MICROSECOND
    return {
        "projections": gemm("attention"),
        "cache": _cache_bytes(asked) / machine.bytes_per_s if asked.decodes else 0.0,
        "scores": asked.tokens * _scores_flops(asked, asked.context) / machine.flops_per_s("bf16"),
        "joins": _joins(asked) * log2(asked.attention_tp) * MICROSECOND,
        "joined": _joined_seconds(asked, machine, asked.tokens),
        "dense": gemm("dense"),
        "shared": gemm("shared") + gemm("router"),
        "head": machine.gemm_seconds(head, 2 * head, "bf16", asked.requests),
        **moe._asdict(),
        "prompts": prompt_seconds(problem, asked, asked.prompts_beside),
        "layers": layers,
        "waits": layers * log2(asked.groups),
        "step": MILLISECOND,
        "requests": asked.requests * MICROSECOND,
    }


def prompt_seconds(problem: Problem, asked: Asked, tokens: float) -> float:
    """Seconds in which every group works through so many prompt tokens: operations and joins, no weights."""
    machine, model = Machine(problem), asked.model
    layers = sum(
        2.0 * part.weights / machine.flops_per_s(part.dtype)
        for name, part in body_parts(model, asked.attention_tp).items()
        if name in ("attention", "dense", "shared", "router")
    )
    assignments = len(model.moe_layer_ids) * model.top_k / asked.attention_tp
    experts = assignments * model.flops_per_assignment / machine.flops_per_s(model.weight_dtype)
    scores = _scores_flops(asked, asked.prompt_tokens / 2, prompts=True) / machine.flops_per_s("bf16")
    return tokens * (layers + experts + scores) + _joined_seconds(asked, machine, tokens)


def _cache_bytes(asked: Asked) -> float:
    element = KV_BYTES[asked.body.kv_dtype]
    return asked.requests * sum(
        kind.layers * read_bytes(kind, asked.context, element, asked.attention_tp)
        for kind in asked.body.attention
    )


def _scores_flops(asked: Asked, context: float, *, prompts: bool = False) -> float:
    """Of one token, over all layers."""
    absorbed = asked.decodes and not prompts
    return sum(
        kind.layers * scores_flops(kind, context, asked.attention_tp, absorbed=absorbed)
        for kind in asked.body.attention
    )


def _joins(asked: Asked) -> int:
    """All-reduces of a step: after attention, and after dense layers; MoE layers have their combine."""
    return asked.model.layers + asked.body.dense_layers


def _joined_seconds(asked: Asked, machine: Machine, tokens: float) -> float:
    """Reduce-scatter and all-gather of bf16 vectors over an attention group."""
    gpus = asked.attention_tp
    if gpus == 1:
        return 0.0
    vectors_bytes = tokens * asked.model.hidden * 2.0
    return _joins(asked) * 2 * vectors_bytes * (gpus - 1) / gpus / machine.link_bytes_per_s(gpus)
