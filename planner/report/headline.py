"""The head of a plan's details: the question, memory, objective and the distance to the bounds."""

from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.bounds import PARTS
from planner.cost import grouped_bytes, ledger
from planner.load import spans
from planner.plan import Plan
from planner.problem import Problem


def headline(plan: Plan) -> Text:
    return Text(
        "\n".join(
            [
                *_question(plan),
                _objective_line(plan),
                *_memory(plan.problem, plan.origin.engine),
                _gap_in_balance(plan),
                _gap_in_seconds(plan),
                _proven(plan),
            ]
        )
    )


def _question(plan: Plan) -> list[str]:
    problem, model, workload = plan.problem, plan.problem.model, plan.problem.workload
    layers, load = len(model.placed_layer_ids), problem.load
    held_out = "none held out: figures on unseen load need at least two windows"
    if plan.held_out_load:
        held_out = f"{plan.held_out_load.windows} held out"
    slots = f"{problem.gpus} GPUs x {problem.slots_per_gpu} slots (R = {problem.redundant})"
    rule = f"replica rule {problem.replica_rule} · transport {workload.transport}"
    return [
        f"{model.name} on {problem.topology.name}: {layers} layers x {model.experts} experts",
        f"{slots} · method {plan.origin.method}",
        f"engine {plan.origin.engine or 'none'} · {rule}",
        f"{workload.phase}, {workload.tokens_per_rank} tokens a rank",
        f"load: {load.source}; {load.windows} {load.window_unit}(s) fitted, {held_out}",
    ]


def _gap_in_balance(plan: Plan) -> str:
    seconds = human_seconds(plan.bound_seconds)
    return (
        f"bound: busiest GPUs are {plan.gap:.2%} above what any placement must carry; "
        f"no placement is predicted below {seconds}"
    )


def _memory(problem: Problem, engine: str | None) -> list[str]:
    """Where a GPU's memory goes, and how many requests at full context it leaves room for."""
    found, workload = ledger(problem, engine), problem.workload
    assumed = {} if problem.model.body else {"attention, dense and other weights": " (assumed)"}
    said = [
        f"{human_bytes(size)} {name}{assumed.get(name, '')}"
        for name, size in grouped_bytes(found).items()
        if size
    ]
    lengths = f"{workload.context_tokens:,} tokens" + ("" if workload.context_given else " (assumed)")
    groups = problem.gpus // workload.attention_tp
    planned = f"the floor of {human_bytes(found.kv_floor_bytes)} is kept"
    if not found.kv_floor_bytes:
        planned = f"{found.planned_requests * groups:,} are planned"
    fits = f"fits {found.requests * groups:,} requests of {lengths} at once"
    return [
        f"memory a GPU: {', '.join(said)}; {human_bytes(found.kv_left_bytes)} for the KV cache",
        f"{fits}, {human_bytes(found.request_bytes)} each; {planned}",
    ]


def _objective_line(plan: Plan) -> str:
    objective, held_out = plan.problem.objective, plan.held_out_objective_seconds
    law = {
        "mean": "mean of windows",
        "worst": "worst window",
        "risk": f"mean + {objective.z:g} standard deviations of windows",
    }[objective.kind]
    over = f"worst of {len(plan.problem.load.domain_names)} domains, {law}" if objective.robust else law
    judged = f", {human_seconds(held_out)} held-out" if held_out is not None else ""
    joined = " · re-splittable: shared experts join all GPUs" if plan.problem.resplittable else ""
    return f"objective ({over}): {human_seconds(plan.fitted_objective_seconds)} a step fitted{judged}{joined}"


def _gap_in_seconds(plan: Plan) -> str:
    """How much of the distance to the bound is dispatch, compute and combine, and what bounds each."""
    shares = {part: max(plan.gap_seconds[part], 0) / plan.bound_seconds for part in PARTS}
    parts = [f"{part} {shares[part]:.1%} (bound by: {plan.time_bound.reason(part)})" for part in PARTS]
    return f"the step is {max(plan.gap_seconds_share, 0):.1%} above that: {', '.join(parts)}"


def _proven(plan: Plan) -> str:
    layer_ids = plan.placement.layer_ids
    claims = {
        "balance": plan.balanced_L,
        "time on the fitted load": plan.fastest_L,
        "the objective over windows": plan.optimal_L,
    }
    proven = []
    for name, proven_L in claims.items():
        layers = [layer for layer, holds in zip(layer_ids, proven_L, strict=True) if holds]
        proven.append(f"{name}: {layer_ranges(layers)}")
    return f"proven optimal for {'; for '.join(proven)}"


def layer_ranges(layers: list[int]) -> str:
    """
    >>> layer_ranges([0, 1, 2, 5]), layer_ranges([])
    ('layers 0-2, 5', 'no layer')
    """
    return f"layer{'s' if len(layers) > 1 else ''} {spans(layers)}" if layers else "no layer"
