"""A plan as tables for a terminal: what it is predicted to do, beside doing nothing, and what each figure rests on."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_bytes, human_seconds
from planner.bounds import PARTS
from planner.cost import COMPUTE, DISPATCH, BestSplit, Cost, ledger
from planner.plan import Plan
from planner.problem import Problem, Survival
from planner.report.curve import curve_table
from planner.report.loss import loss_note, loss_table
from planner.report.moves import moves_report

WORTH_IT = 0.01  # a gain below this share of the step is called no gain


def plan_report(plan: Plan, worst: int = 5) -> RenderableType:
    """Everything a person needs to decide whether to load the plan."""
    more: list[RenderableType] = [domains_table(plan)] if plan.domains else []
    if plan.after_loss:
        more += [loss_table(plan.after_loss), Text(loss_note(plan.after_loss))]
    if plan.origin.curve:
        more.append(curve_table(plan.origin.curve, plan.problem.redundant))
    return Group(
        _headline(plan),
        costs_table(plan),
        *more,
        layers_table(plan, worst),
        *moves_report(plan),
        _evidence(plan),
    )


def verdict(plan: Plan) -> str:
    """One sentence: is the plan worth loading, on load it was not fitted to where there is some?"""
    if plan.problem.survive and not any(baseline.survives for baseline in plan.baselines):
        return _price_of_survival(plan, plan.problem.survive)
    best = min(
        (baseline for baseline in plan.baselines if baseline.survives),
        key=lambda baseline: (_judged_on(baseline.held_out, baseline.fitted).total_seconds, baseline.name),
    )
    before, after = (
        _judged_on(best.held_out, best.fitted).total_seconds,
        _judged_on(plan.held_out, plan.fitted).total_seconds,
    )
    gain, where = 1 - after / before, "held-out" if plan.held_out else "fitted"
    if gain < WORTH_IT:
        return f"Doing nothing wins: '{best.name}' is predicted {human_seconds(before)} a step on {where} load, this plan {human_seconds(after)}."
    return f"The plan is predicted to take {gain:.1%} less time a step than the best default ('{best.name}') on {where} load."


def _price_of_survival(plan: Plan, survive: Survival) -> str:
    """What the step takes beside the fastest default, which would lose experts."""
    best = min(
        plan.baselines,
        key=lambda baseline: (_judged_on(baseline.held_out, baseline.fitted).total_seconds, baseline.name),
    )
    before, after = (
        _judged_on(best.held_out, best.fitted).total_seconds,
        _judged_on(plan.held_out, plan.fitted).total_seconds,
    )
    change = (
        f"{abs(after / before - 1):.1%} {'more' if after > before else 'less'} time a step than '{best.name}'"
    )
    return f"No default placement survives the loss of {survive}; the plan does, and is predicted to take {change}."


def costs_table(plan: Plan) -> Table:
    table = _table_of_costs("placement", "R", "load")
    rows = [("this plan", plan.problem.redundant, plan.fitted, plan.held_out)]
    rows += [
        (baseline.name, baseline.redundant, baseline.fitted, baseline.held_out) for baseline in plan.baselines
    ]
    for name, redundant, fitted, held_out in rows:
        table.add_row(name, str(redundant), "fitted", *_cost_cells(fitted))
        if held_out:
            table.add_row("", "", "held-out", *_cost_cells(held_out))
    return table


def domains_table(plan: Plan) -> Table:
    """Each domain of the load apart: a plan that is good on their sum may be bad on one."""
    table = Table(title="Domains apart", title_justify="left")
    for name in ("domain", "load", "windows", "objective", "max/mean", "cross-node"):
        table.add_column(name, justify="left" if name in ("domain", "load") else "right")
    for domain in plan.domains:
        sides = (
            ("fitted", domain.fitted_windows, domain.fitted, domain.fitted_objective_seconds),
            ("held-out", domain.held_out_windows, domain.held_out, domain.held_out_objective_seconds),
        )
        for side, windows, found, seconds in sides:
            if found is not None and seconds is not None:
                figures = (
                    human_seconds(seconds),
                    f"{found.max_over_mean:.4f}",
                    f"{found.cross_node_share:.1%}",
                )
                table.add_row(domain.name, side, str(windows), *figures)
    return table


def split_report(problem: Problem, split: BestSplit, notes: tuple[str, ...]) -> RenderableType:
    """What weights on replicas could reach, for `moeplan evaluate --best-split`."""
    table = Table(title=f"max/mean over {split.windows} window(s)", title_justify="left")
    for name in ("weights on replicas", "max/mean", "balancedness"):
        table.add_column(name, justify="left" if name == "weights on replicas" else "right")
    rows = (
        ("none: even split", split.even_max_over_mean),
        ("fitted to the plan's load, kept", split.static_max_over_mean),
        ("best for each window, known beforehand", split.resplit_max_over_mean),
    )
    for name, value in rows:
        table.add_row(name, f"{value:.4f}", f"{1 / value:.4f}")
    apart = sum(islands > 1 for islands in split.islands_L)
    joined = (
        f"in {apart} of {len(split.islands_L)} layers shared experts do not join all GPUs (--resplittable asks for that)"
        if apart
        else "all layers are joined"
    )
    lines = [
        f"{problem.model.name} on {problem.topology.name}: {joined}",
        *(f"Note: {note}" for note in notes),
    ]
    return Group(Text("\n".join(lines)), table)


def cost_report(problem: Problem, found: Cost, notes: tuple[str, ...]) -> RenderableType:
    """One placement on one load, for `moeplan evaluate`."""
    table = _table_of_costs("rule", "transport")
    table.add_row(problem.replica_rule, problem.workload.transport, *_cost_cells(found))
    lines = [
        f"{problem.model.name} on {problem.topology.name}, load: {problem.load.source}",
        *(f"Note: {note}" for note in notes),
    ]
    return Group(Text("\n".join(lines)), table)


def engines_report(found: Mapping[str, tuple[Problem, Cost]], notes: tuple[str, ...]) -> RenderableType:
    """One placement under every engine's rule, transport and dtypes, for `moeplan evaluate --all-engines`."""
    table = _table_of_costs("engine", "rule", "transport")
    for name, (problem, priced) in found.items():
        table.add_row(name, problem.replica_rule, problem.workload.transport, *_cost_cells(priced))
    problem = next(iter(found.values()))[0]
    lines = [
        f"{problem.model.name} on {problem.topology.name}, load: {problem.load.source}",
        *(f"Note: {note}" for note in notes),
    ]
    return Group(Text("\n".join(lines)), table)


def layers_table(plan: Plan, worst: int) -> Table:
    """The layers with the busiest GPUs, with their bound."""
    fitted, held_out = plan.fitted, plan.held_out
    order = sorted(
        range(len(fitted.layer_ids)), key=lambda row: (-fitted.max_over_mean_L[row], fitted.layer_ids[row])
    )[:worst]
    table = Table(
        title=f"Layers with the busiest GPUs (worst {len(order)} of {len(fitted.layer_ids)})",
        title_justify="left",
    )
    for name in ("layer", "max/mean fitted", "held-out", "bound", "gap", "bound from"):
        table.add_column(name, justify="left" if name == "bound from" else "right")
    for row in order:
        bound = plan.bound.load_L[row] / fitted.fair_L[row]
        table.add_row(
            str(fitted.layer_ids[row]),
            f"{fitted.max_over_mean_L[row]:.4f}",
            f"{held_out.max_over_mean_L[row]:.4f}" if held_out else "-",
            f"{bound:.4f}",
            f"{max(fitted.max_over_mean_L[row] / bound - 1, 0):.2%}",
            plan.bound.reason_L[row],
        )
    return table


def _headline(plan: Plan) -> Text:
    problem = plan.problem
    held_out = (
        f"{plan.held_out_load.windows} held out"
        if plan.held_out_load
        else "none held out: figures on unseen load need at least two windows"
    )
    lines = [
        f"{problem.model.name} on {problem.topology.name}: {len(problem.model.placed_layer_ids)} layers x {problem.model.experts} experts",
        f"{problem.gpus} GPUs x {problem.slots_per_gpu} slots (R = {problem.redundant}) · method {plan.origin.method}",
        f"engine {plan.origin.engine or 'none'} · replica rule {problem.replica_rule} · transport {problem.workload.transport}",
        f"{problem.workload.phase}, {problem.workload.tokens_per_rank} tokens a rank",
        f"load: {problem.load.source}; {problem.load.windows} {problem.load.window_unit}(s) fitted, {held_out}",
        _objective_line(plan),
        *_memory(problem, plan.origin.engine),
        f"bound: busiest GPUs are {plan.gap:.2%} above what any placement must carry; no placement is predicted below {human_seconds(plan.bound_seconds)}",
        _gap_in_seconds(plan),
        _proven(plan),
        verdict(plan),
    ]
    return Text("\n".join(lines))


def _memory(problem: Problem, engine: str | None) -> list[str]:
    found = ledger(problem, engine)
    experts, replicas, *others = found.lines
    free = found.memory_bytes - experts.size_bytes - replicas.size_bytes
    names = {
        "other_weights": "other weights",
        "all_to_all": "all-to-all buffers",
        "transfer": "transfer buffer",
    }
    said = [
        f"{human_bytes(line.size_bytes)} {names[line.name]}{' (assumed)' if line.basis.startswith('assumed') else ''}"
        for line in others
        if line.size_bytes
    ]
    return [
        f"memory a GPU: {human_bytes(experts.size_bytes)} experts + {human_bytes(replicas.size_bytes)} replicas, {human_bytes(free)} left for everything else",
        f"of that: {', '.join(said)}, {human_bytes(found.kv_left_bytes)} for the KV cache",
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
    """How much of the distance to the bound in seconds is dispatch, compute and combine, and what bounds each."""
    parts = ", ".join(
        f"{part} {max(plan.gap_seconds[part], 0) / plan.bound_seconds:.1%} (bound by: {plan.time_bound.reason(part)})"
        for part in PARTS
    )
    return f"the step is {max(plan.gap_seconds_share, 0):.1%} above that: {parts}"


def _proven(plan: Plan) -> str:
    layer_ids = plan.placement.layer_ids
    claims = {
        "balance": plan.balanced_L,
        "time on the fitted load": plan.fastest_L,
        "the objective over windows": plan.optimal_L,
    }
    proven = {
        name: layer_ranges([layer for layer, holds in zip(layer_ids, rows, strict=True) if holds])
        for name, rows in claims.items()
    }
    return f"proven optimal for {'; for '.join(f'{name}: {layers}' for name, layers in proven.items())}"


def layer_ranges(layers: list[int]) -> str:
    """
    >>> layer_ranges([0, 1, 2, 5]), layer_ranges([])
    ('layers 0-2, 5', 'no layer')
    """
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    spans = [
        str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)
    ]
    return f"layer{'s' if len(layers) > 1 else ''} {', '.join(spans)}" if layers else "no layer"


def _evidence(plan: Plan) -> Text:
    kinds = sorted({resource.rate.evidence.kind for resource in plan.problem.topology.resources})
    lines = [
        f"Rates of the topology: {', '.join(kinds) or 'none'}. Dispatch: {DISPATCH[plan.problem.workload.transport].source}. Compute: {COMPUTE.source}.",
        *(f"Note: {note}" for note in plan.origin.notes),
    ]
    return Text("\n".join(lines), style="dim")


def _table_of_costs(*keys: str) -> Table:
    table = Table(title="Predicted step, all layers", title_justify="left")
    for name in (
        *keys,
        "total",
        "dispatch",
        "compute",
        "combine",
        "max/mean",
        "balancedness",
        "cross-node",
        "bottleneck",
    ):
        table.add_column(
            name,
            justify="left"
            if name in ("placement", "load", "engine", "rule", "transport", "bottleneck")
            else "right",
        )
    return table


def _cost_cells(cost: Cost) -> tuple[str, ...]:
    return (
        human_seconds(cost.total_seconds),
        human_seconds(float(cost.dispatch_seconds_L.sum())),
        human_seconds(float(cost.compute_seconds_L.sum())),
        human_seconds(float(cost.combine_seconds_L.sum())),
        f"{cost.max_over_mean:.4f}",
        f"{1 / cost.max_over_mean:.4f}",
        f"{cost.cross_node_share:.1%}",
        cost.bottleneck,
    )


def _judged_on(held_out: Cost | None, fitted: Cost) -> Cost:
    return held_out or fitted
