"""A Plan, and the figures in it, as plain values for JSON. `plan_file` writes and reads them.

It holds no clock and no machine name, so the same question gives the same bytes.
"""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from planner.bounds import PARTS
from planner.cost import AfterLoss, Cost, ledger
from planner.load import LoadProfile
from planner.model import ModelSpec, body_to_dict
from planner.plan.moves import Moves, steps_to_pay
from planner.plan.plain import attributes, plain, rows
from planner.plan.plan import Baseline, Domain, Plan
from planner.plan.resize import Resize
from planner.plan.rests_on import constants_to_dict
from planner.problem import Problem

SCHEMA = "moeplan/plan/1"
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


def baseline_to_dict(baseline: Baseline) -> dict[str, Any]:
    return {
        **attributes(baseline, "name", "redundant", "survives"),
        "fitted": cost_to_dict(baseline.fitted, layers=False),
        "held_out": cost_to_dict(baseline.held_out, layers=False) if baseline.held_out else None,
    }


def loss_to_dict(found: AfterLoss) -> dict[str, Any]:
    """Worst and mean over the losses, on held-out load where there is some; an expert's survivors share
    evenly.
    """
    return {**asdict(found), "survive": found.survive.word(), "exact": found.exact}


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


def moves_to_dict(moves: Moves, saved_seconds: float | None) -> dict[str, Any]:
    """Figures and every transfer: [wave, layer, expert, sending GPU, receiving GPU, slot], and every read."""
    found, reads = moves.transfers, moves.transfers.reads
    layer_ids = np.array(moves.layer_ids, dtype=np.int64)
    read = (layer_ids[reads.row_D], reads.expert_D, reads.target_D, reads.slot_D)
    columns = {
        "wave": found.wave_T,
        "layer": layer_ids[found.row_T],
        "expert": found.expert_T,
        "source": found.source_T,
        "target": found.target_T,
        "slot": found.slot_T,
    }
    return {
        "from": moves.previous,
        "allowed": moves.most,
        "needed": moves.needed,
        "moved_slots": moves.moved,
        "share": moves.share,
        "bytes": moves.total_bytes,
        **attributes(moves, "most_received_bytes", "seconds"),
        "saved_seconds_a_step": saved_seconds,
        "steps_to_pay": steps_to_pay(moves, saved_seconds),
        "waves": rows({"bytes": moves.bytes_W, "seconds": moves.seconds_W}),
        "columns": list(columns),
        "transfers": np.stack(list(columns.values()), axis=1).tolist(),
        "read_bytes": moves.read_bytes,
        "read_columns": ["layer", "expert", "target", "slot"],
        "reads": np.stack(read, axis=1).tolist(),
        "resize": resize_to_dict(moves.resize) if moves.resize else None,
    }


def resize_to_dict(resize: Resize) -> dict[str, Any]:
    """The numbers by which the transfers count GPUs and slots, and which of them each rank of the plan is."""
    return {
        "how": resize.how,
        "changed": list(resize.changed),
        "gpus": resize.topology.gpu_count,
        "gpu_of_rank": list(resize.kept_G),
    }


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


def load_to_dict(load: LoadProfile) -> dict[str, Any]:
    """Totals over windows; a trace stays in its own file."""
    return {
        **attributes(load, "source", "windows", "window_unit", "window_names", "domain_names", "phase"),
        "traced": load.trace is not None,
        "unmeasured_layer_ids": list(load.unmeasured_layer_ids),
        "counts": load.total_LE.tolist(),
    }
