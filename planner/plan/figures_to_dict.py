"""Figures of a placement as plain values for JSON: its cost, its cost after a loss, its memory. SI units."""

from dataclasses import asdict
from typing import Any

from planner.bounds import PARTS
from planner.cost import AfterLoss, Cost, ledger
from planner.plan.plain import attributes, rows
from planner.problem import Problem


def cost_to_dict(found: Cost, *, layers: bool = True) -> dict[str, Any]:
    """Figures of a Cost; seconds per step, summed over layers or per layer."""
    seconds = {f"{part}_seconds": getattr(found, f"{part}_seconds_L") for part in PARTS}
    summary = {
        "total_seconds": found.total_seconds,
        **{name: float(seconds_L.sum()) for name, seconds_L in seconds.items()},
        **attributes(found, "bottleneck", "max_over_mean"),
        "balancedness": 1 / found.max_over_mean,
        "cross_node_share": found.cross_node_share,
    }
    if not layers:
        return summary
    columns = {
        "layer": found.layer_ids,
        "silent": found.silent_L,
        "max_over_mean": found.max_over_mean_L,
        "balancedness": found.balancedness_L,
        **seconds,
        "bottleneck": found.bottleneck_L,
        "cross_node_share": found.cross_node_L,
    }
    return {**summary, "layers": rows(columns)}


def loss_to_dict(found: AfterLoss) -> dict[str, Any]:
    """Worst and mean over the losses, on held-out load where there is some; an expert's survivors share
    evenly.
    """
    return {**asdict(found), "survive": found.survive.word(), "exact": found.exact}


def memory_to_dict(problem: Problem, engine: str | None) -> dict[str, Any]:
    """Bytes on the GPU that keeps least.

    `free_bytes` is what the slots leave, `kv_left_bytes` what the other lines leave of that. A request is
    held by `attention_tp` GPUs: its bytes are those on each of them, `requests` how many they hold at once.
    """
    found = ledger(problem, engine)
    basis = {f"{line.name}_bytes": line.basis for line in found.lines}
    return {
        "expert_bytes": problem.model.expert_bytes,
        "slot_bytes": problem.slot_bytes,
        **{f"{line.name}_bytes": line.size_bytes for line in found.lines},
        "free_bytes": float(problem.free_bytes_G.min()),
        **attributes(found, "kv_left_bytes", "kv_token_bytes", "request_bytes", "needed_bytes"),
        **attributes(found, "planned_requests", "requests", "fits"),
        "basis": {**basis, "request_bytes": found.kv_basis},
    }
