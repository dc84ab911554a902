"""A plan as tables for a terminal: what it is predicted to do, and what each figure rests on."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from planner.base import human_seconds
from planner.cost import constants_of
from planner.plan import Plan
from planner.report.answer import NOTHING, Asked, plan_answer
from planner.report.costs import cost_cells, table_of_costs, table_of_traffic, traffic_cells
from planner.report.curve import curve_table
from planner.report.details import answered
from planner.report.headline import headline
from planner.report.loss import loss_note, loss_table
from planner.report.moves import moves_report
from planner.report.tables import table_of
from planner.report.whole import whole_parts


def plan_report(plan: Plan, asked: Asked = NOTHING, *, details: bool = False) -> RenderableType:
    """Five lines and the warnings; with `details` everything they rest on."""
    return answered(plan_answer(plan, asked), plan_parts(plan), plan.origin.notes, details=details)


def plan_parts(plan: Plan, worst: int = 5) -> list[RenderableType]:
    """Everything a person needs to follow the answer."""
    more: list[RenderableType] = [domains_table(plan)] if plan.domains else []
    if plan.after_loss:
        more += [loss_table(plan.after_loss), Text(loss_note(plan.after_loss))]
    if plan.origin.curve:
        more.append(curve_table(plan.origin.curve, plan.problem.redundant))
    return [
        headline(plan),
        *whole_parts(plan.problem, plan.held_out or plan.fitted, plan.origin.engine),
        *costs_tables(plan),
        *more,
        layers_table(plan, worst),
        *moves_report(plan),
        _evidence(plan),
    ]


def costs_tables(plan: Plan) -> tuple[Table, Table]:
    judged = [("this plan", plan.problem.redundant, plan.fitted, plan.held_out)]
    judged += [(one.name, one.redundant, one.fitted, one.held_out) for one in plan.baselines]
    seconds, traffic = [], []
    for name, redundant, fitted, held_out in judged:
        sides = (("fitted", fitted), ("held-out", held_out))
        for side, found in sides:
            if found is not None:
                keys = (name, str(redundant), side) if found is fitted else ("", "", side)
                seconds.append((*keys, *cost_cells(found)))
                traffic.append((*keys, *traffic_cells(found)))
    keys = ("placement", "R", "load")
    return table_of_costs(keys, seconds), table_of_traffic(keys, traffic)


def domains_table(plan: Plan) -> Table:
    """Each domain of the load apart: a plan that is good on their sum may be bad on one."""
    rows = []
    for domain in plan.domains:
        sides = (
            ("fitted", domain.fitted_windows, domain.fitted, domain.fitted_objective_seconds),
            ("held-out", domain.held_out_windows, domain.held_out, domain.held_out_objective_seconds),
        )
        for side, windows, found, seconds in sides:
            if found is not None and seconds is not None:
                balance, remote = f"{found.max_over_mean:.4f}", f"{found.cross_node_share:.1%}"
                rows.append((domain.name, side, str(windows), human_seconds(seconds), balance, remote))
    names = ("domain", "load", "windows", "objective", "max/mean", "cross-node")
    return table_of(names, rows, words=("domain", "load"), title="Domains apart")


def layers_table(plan: Plan, worst: int) -> Table:
    """The layers with the busiest GPUs, with their bound."""
    fitted, held_out, layer_ids = plan.fitted, plan.held_out, plan.fitted.layer_ids
    order = sorted(range(len(layer_ids)), key=lambda row: (-fitted.max_over_mean_L[row], layer_ids[row]))
    shown = order[:worst]
    bound_L = plan.bound.load_L / fitted.fair_L
    rows = [
        (
            str(layer_ids[row]),
            f"{fitted.max_over_mean_L[row]:.4f}",
            f"{held_out.max_over_mean_L[row]:.4f}" if held_out else "-",
            f"{bound_L[row]:.4f}",
            f"{max(fitted.max_over_mean_L[row] / bound_L[row] - 1, 0):.2%}",
            plan.bound.reason_L[row],
        )
        for row in shown
    ]
    title = f"Layers with the busiest GPUs (worst {len(shown)} of {len(layer_ids)})"
    names = ("layer", "layer's max/mean", "held-out max/mean", "bound", "gap", "bound from")
    return table_of(names, rows, words=("bound from",), title=title)


def _evidence(plan: Plan) -> Text:
    kinds = sorted({resource.rate.evidence.kind for resource in plan.problem.topology.resources})
    rates = f"Rates of the topology: {', '.join(kinds) or 'none'}."
    return Text("\n".join([rates, *constants_of(plan.problem).lines]), style="dim")
