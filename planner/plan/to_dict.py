"""A Plan, and the figures in it, as plain values for JSON. `plan_file` writes and reads them.

It holds no clock and no machine name, so the same question gives the same bytes.
"""

from dataclasses import asdict
from typing import Any

from planner.bounds import PARTS
from planner.cost import AfterLoss, Cost, ledger
from planner.load import LoadProfile
from planner.plan.moves import moves_to_dict
from planner.plan.plan import Domain, Plan
from planner.problem import Problem

SCHEMA = "moeplan/plan/1"


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    problem = plan.problem
    return {
        "schema": SCHEMA,
        "model": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(problem.model).items()
        },
        "gpus": problem.gpus,
        "slots_per_gpu": problem.slots_per_gpu,
        "redundant": problem.redundant,
        "engine": plan.origin.engine,
        "method": plan.origin.method,
        "replica_rule": problem.replica_rule,
        "workload": asdict(problem.workload),
        "kv_floor_bytes": problem.kv_floor_bytes,
        "survive": problem.survive.word() if problem.survive else None,
        "objective": asdict(problem.objective),
        "resplittable": problem.resplittable,
        "placement": {
            str(layer): row.tolist()
            for layer, row in zip(plan.placement.layer_ids, plan.placement.expert_LP, strict=True)
        },
        "predicted": {
            "fitted": cost_to_dict(plan.fitted),
            "held_out": cost_to_dict(plan.held_out) if plan.held_out else None,
            "fitted_objective_seconds": plan.fitted_objective_seconds,
            "held_out_objective_seconds": plan.held_out_objective_seconds,
            "domains": [domain_to_dict(domain) for domain in plan.domains],
            "baselines": [
                {
                    "name": baseline.name,
                    "redundant": baseline.redundant,
                    "survives": baseline.survives,
                    "fitted": cost_to_dict(baseline.fitted, layers=False),
                    "held_out": cost_to_dict(baseline.held_out, layers=False) if baseline.held_out else None,
                }
                for baseline in plan.baselines
            ],
            "after_loss": loss_to_dict(plan.after_loss) if plan.after_loss else None,
        },
        "bound": {
            "max_over_mean": (plan.bound.load_L / plan.fitted.fair_L).tolist(),
            "reason": list(plan.bound.reason_L),
            "gap": plan.gap,
            "total_seconds": plan.bound_seconds,
            "gap_seconds_share": plan.gap_seconds_share,
            "parts": {
                part: {
                    "gap_seconds": plan.gap_seconds[part],
                    "seconds": getattr(plan.time_bound, f"{part}_seconds_L").tolist(),
                    "reason": list(getattr(plan.time_bound, f"{part}_reason_L")),
                }
                for part in PARTS
            },
            "proven_balance": plan.balanced_L.tolist(),
            "proven_time": plan.fastest_L.tolist(),
            "proven_objective": plan.optimal_L.tolist(),
        },
        **({"moves": moves_to_dict(plan.moves, plan.saved_seconds)} if plan.moves else {}),
        "memory": memory_to_dict(problem, plan.origin.engine),
        "load": load_to_dict(problem.load),
        "held_out_load": load_to_dict(plan.held_out_load) if plan.held_out_load else None,
        "topology": problem.topology.to_dict(),
        "redundant_curve": [point.to_dict() for point in plan.origin.curve] or None,
        "notes": list(plan.origin.notes),
        "provenance": dict(plan.origin.provenance),
    }


def cost_to_dict(found: Cost, *, layers: bool = True) -> dict[str, Any]:
    """Figures of a Cost; seconds per step, summed over layers or per layer."""
    summary: dict[str, Any] = {
        "total_seconds": found.total_seconds,
        "dispatch_seconds": float(found.dispatch_seconds_L.sum()),
        "compute_seconds": float(found.compute_seconds_L.sum()),
        "combine_seconds": float(found.combine_seconds_L.sum()),
        "bottleneck": found.bottleneck,
        "max_over_mean": found.max_over_mean,
        "balancedness": 1 / found.max_over_mean,
        "cross_node_share": found.cross_node_share,
    }
    if layers:
        summary["layers"] = [
            {
                "layer": layer_id,
                "silent": bool(found.silent_L[row]),
                "max_over_mean": float(found.max_over_mean_L[row]),
                "balancedness": float(found.balancedness_L[row]),
                "dispatch_seconds": float(found.dispatch_seconds_L[row]),
                "compute_seconds": float(found.compute_seconds_L[row]),
                "combine_seconds": float(found.combine_seconds_L[row]),
                "bottleneck": found.bottleneck_L[row],
                "cross_node_share": float(found.cross_node_L[row]),
            }
            for row, layer_id in enumerate(found.layer_ids)
        ]
    return summary


def loss_to_dict(found: AfterLoss) -> dict[str, Any]:
    """Worst and mean over the losses, on held-out load where there is some; the survivors of an expert share evenly."""
    value = asdict(found)
    return {**value, "survive": found.survive.word(), "exact": found.exact}


def domain_to_dict(domain: Domain) -> dict[str, Any]:
    """Figures of one domain apart; seconds per step."""
    sides = {
        "fitted": (domain.fitted_windows, domain.fitted, domain.fitted_objective_seconds),
        "held_out": (domain.held_out_windows, domain.held_out, domain.held_out_objective_seconds),
    }
    return {
        "name": domain.name,
        **{
            side: {"windows": windows, "objective_seconds": seconds, **cost_to_dict(found, layers=False)}
            if found
            else None
            for side, (windows, found, seconds) in sides.items()
        },
    }


def memory_to_dict(problem: Problem, engine: str | None) -> dict[str, Any]:
    """Bytes on the GPU that keeps least. `free_bytes` is what the slots leave, `kv_left_bytes` what the other lines leave of that."""
    found = ledger(problem, engine)
    return {
        "expert_bytes": problem.model.expert_bytes,
        "slot_bytes": problem.slot_bytes,
        **{f"{line.name}_bytes": line.size_bytes for line in found.lines},
        "free_bytes": float(problem.free_bytes_G.min()),
        "kv_left_bytes": found.kv_left_bytes,
        "basis": {f"{line.name}_bytes": line.basis for line in found.lines},
    }


def load_to_dict(load: LoadProfile) -> dict[str, Any]:
    """Totals over windows; a trace stays in its own file."""
    return {
        "source": load.source,
        "windows": load.windows,
        "window_unit": load.window_unit,
        "window_names": list(load.window_names),
        "domain_names": list(load.domain_names),
        "phase": load.phase,
        "traced": load.trace is not None,
        "unmeasured_layer_ids": list(load.unmeasured_layer_ids),
        "counts": load.total_LE.tolist(),
    }
