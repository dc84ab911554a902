"""A Plan, and the figures in it, as plain values for JSON. `plan_file` writes and reads them.

It holds no clock and no machine name, so the same question gives the same bytes.
"""

from dataclasses import asdict, replace
from typing import Any

from planner.bounds import PARTS
from planner.cost import Cost
from planner.load import LoadProfile
from planner.model import ModelSpec, body_to_dict
from planner.plan.figures_to_dict import cost_to_dict, loss_to_dict, memory_to_dict
from planner.plan.moves_to_dict import moves_to_dict
from planner.plan.plain import attributes, plain
from planner.plan.plan import Baseline, Domain, Plan
from planner.plan.plan_shape import SCHEMA
from planner.plan.rests_on import constants_to_dict

SAID_OR_LEFT_OUT = ("quant_method", "facts_of", "body")  # facts of a model that are empty for many
CURVE_FIGURES = (
    "redundant",
    "slots_per_gpu",
    "fitted_seconds",
    "held_out_seconds",
    "max_over_mean",
    "weights_bytes",
    "free_bytes",
)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    problem, origin, placement = plan.problem, plan.origin, plan.placement
    layers = (str(layer) for layer in placement.layer_ids)
    moves = {"moves": moves_to_dict(plan.moves, plan.saved_seconds)} if plan.moves else {}
    return {
        "schema": SCHEMA,
        "model": _model(problem.model),
        **attributes(problem, "gpus", "slots_per_gpu", "redundant"),
        **attributes(origin, "engine", "method"),
        "replica_rule": problem.replica_rule,
        "workload": asdict(problem.workload),
        "kv_floor_bytes": problem.kv_floor_bytes,
        "survive": problem.survive.word() if problem.survive else None,
        "objective": asdict(problem.objective),
        "resplittable": problem.resplittable,
        "placement": dict(zip(layers, placement.expert_LP.tolist(), strict=True)),
        "predicted": predicted_to_dict(plan),
        "constants": constants_to_dict(problem),
        "bound": bound_to_dict(plan),
        **moves,
        "memory": memory_to_dict(problem, origin.engine),
        "load": load_to_dict(problem.load),
        "held_out_load": load_to_dict(plan.held_out_load) if plan.held_out_load else None,
        "topology": problem.topology.to_dict(),
        "redundant_curve": [attributes(point, *CURVE_FIGURES) for point in origin.curve] or None,
        "notes": list(origin.notes),
        "provenance": dict(origin.provenance),
    }


def _model(model: ModelSpec) -> dict[str, Any]:
    """The model's facts; how it is quantised, whose facts they are and its body only where that is
    said.
    """
    facts = {key: plain(value) for key, value in asdict(replace(model, body=None)).items()}
    if model.body is not None:
        facts["body"] = body_to_dict(model.body)
    return {key: value for key, value in facts.items() if key not in SAID_OR_LEFT_OUT or value}


def predicted_to_dict(plan: Plan) -> dict[str, Any]:
    return {
        "fitted": cost_to_dict(plan.fitted),
        "held_out": cost_to_dict(plan.held_out) if plan.held_out else None,
        **attributes(plan, "fitted_objective_seconds", "held_out_objective_seconds"),
        "domains": [domain_to_dict(domain) for domain in plan.domains],
        "baselines": [baseline_to_dict(baseline) for baseline in plan.baselines],
        "after_loss": loss_to_dict(plan.after_loss) if plan.after_loss else None,
    }


def bound_to_dict(plan: Plan) -> dict[str, Any]:
    """How far the plan is from the bounds: in balance, in seconds by part, and which layers are proven
    optimal.
    """
    parts = {
        part: {
            "gap_seconds": plan.gap_seconds[part],
            "seconds": plain(getattr(plan.time_bound, f"{part}_seconds_L")),
            "reason": plain(getattr(plan.time_bound, f"{part}_reason_L")),
        }
        for part in PARTS
    }
    return {
        "max_over_mean": (plan.bound.load_L / plan.fitted.fair_L).tolist(),
        "reason": list(plan.bound.reason_L),
        "gap": plan.gap,
        "total_seconds": plan.bound_seconds,
        "gap_seconds_share": plan.gap_seconds_share,
        "parts": parts,
        "proven_balance": plan.balanced_L.tolist(),
        "proven_time": plan.fastest_L.tolist(),
        "proven_objective": plan.optimal_L.tolist(),
    }


def baseline_to_dict(baseline: Baseline) -> dict[str, Any]:
    return {
        **attributes(baseline, "name", "redundant", "survives"),
        "fitted": cost_to_dict(baseline.fitted, layers=False),
        "held_out": cost_to_dict(baseline.held_out, layers=False) if baseline.held_out else None,
    }


def domain_to_dict(domain: Domain) -> dict[str, Any]:
    """Figures of one domain apart; seconds per step."""

    def side(windows: int, found: Cost | None, seconds: float | None) -> dict[str, Any] | None:
        if found is None:
            return None
        return {"windows": windows, "objective_seconds": seconds, **cost_to_dict(found, layers=False)}

    return {
        "name": domain.name,
        "fitted": side(domain.fitted_windows, domain.fitted, domain.fitted_objective_seconds),
        "held_out": side(domain.held_out_windows, domain.held_out, domain.held_out_objective_seconds),
    }


def load_to_dict(load: LoadProfile) -> dict[str, Any]:
    """Totals over windows; a trace stays in its own file."""
    return {
        **attributes(load, "source", "windows", "window_unit", "window_names", "domain_names", "phase"),
        "traced": load.trace is not None,
        "unmeasured_layer_ids": list(load.unmeasured_layer_ids),
        "counts": load.total_LE.tolist(),
    }
