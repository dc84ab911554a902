"""A plan judged anew, as text and a table: for `moeplan evaluate`."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from planner.base import human_seconds
from planner.cost import BestSplit, Cost
from planner.planning import WORTH_IT, Judged
from planner.problem import Problem
from planner.report.answer import fits_line, limit_line, question_line
from planner.report.costs import cost_cells, table_of_costs, table_of_traffic, traffic_cells
from planner.report.details import answered
from planner.report.lines import line
from planner.report.tables import table_of
from planner.report.whole import whole_parts


def cost_report(plan_file: Path, judged: Judged, *, details: bool) -> RenderableType:
    """One placement on one load, beside what its engine would do by itself."""
    problem = judged.problem
    keys, cells = ("placement", "rule", "transport"), (problem.replica_rule, problem.workload.transport)
    both = (("the plan", judged.cost), ("engine default", judged.default))
    parts: list[RenderableType] = [
        Text(f"load: {problem.load.source}"),
        *whole_parts(problem, judged.cost, judged.engine),
        table_of_costs(keys, [(name, *cells, *cost_cells(found)) for name, found in both]),
        table_of_traffic(keys, [(name, *cells, *traffic_cells(found)) for name, found in both]),
    ]
    return answered(_answer(plan_file, judged), parts, judged.notes, details=details)


def _answer(plan_file: Path, judged: Judged) -> list[str]:
    problem, engine = judged.problem, judged.engine
    gain = 1 - judged.cost.total_seconds / judged.default.total_seconds
    told = f"{abs(gain):.1%} {'less' if gain >= 0 else 'more'} MoE time a step than the default, same R"
    if gain >= WORTH_IT:
        name = engine or "ENGINE"
        next_line = line("Next", f"moeplan emit {plan_file} --engine {name} -o out", "moeplan emit")
    else:
        told = f"none: {told}"
        next_line = line(
            "Next", f"moeplan solve with this load and --from {plan_file}", "moeplan solve --from"
        )
    return [
        question_line("Plan", problem, engine),
        fits_line(problem, engine),
        line("Gain", f"{told}, on this load", told),
        limit_line(problem, judged.cost, engine),
        next_line,
    ]


def engines_report(found: Mapping[str, tuple[Problem, Cost]], notes: tuple[str, ...]) -> RenderableType:
    """One placement under every engine's rule, transport and dtypes, for `--all-engines`."""
    keys = ("engine", "rule", "transport")
    by_time = sorted(found.items(), key=lambda item: (item[1][1].total_seconds, item[0]))
    costs = [(name, problem, priced) for name, (problem, priced) in by_time]
    keyed = [((name, one.replica_rule, one.workload.transport), priced) for name, one, priced in costs]
    ends = {"Least": costs[0], "Most": costs[-1]}
    lines = [
        question_line("Plan", costs[0][1], None),
        *(
            line(end, f"{name}: {human_seconds(priced.total_seconds)} of MoE layers a step")
            for end, (name, _, priced) in ends.items()
        ),
    ]
    parts = [
        table_of_costs(keys, [(*cells, *cost_cells(priced)) for cells, priced in keyed]),
        table_of_traffic(keys, [(*cells, *traffic_cells(priced)) for cells, priced in keyed]),
    ]
    return answered(lines, parts, notes, details=True)


def split_report(problem: Problem, split: BestSplit, notes: tuple[str, ...]) -> RenderableType:
    """What weights on replicas could reach, for `--best-split`."""
    reached = {
        "none: even split": split.even_max_over_mean,
        "fitted to the plan's load, kept": split.static_max_over_mean,
        "best for each window, known beforehand": split.resplit_max_over_mean,
    }
    table = table_of(
        ("weights on replicas", "max/mean", "balancedness"),
        [(name, f"{value:.4f}", f"{1 / value:.4f}") for name, value in reached.items()],
        words=("weights on replicas",),
        title=f"max/mean over {split.windows} window(s)",
    )
    return Group(_judged(problem, f": {_joined(split)}", notes), table)


def _joined(split: BestSplit) -> str:
    apart = sum(islands > 1 for islands in split.islands_L)
    if not apart:
        return "all layers are joined"
    layers = f"in {apart} of {len(split.islands_L)} layers"
    return f"{layers} shared experts do not join all GPUs (--resplittable asks for that)"


def _judged(problem: Problem, how: str, notes: tuple[str, ...]) -> Text:
    head = f"{problem.model.name} on {problem.topology.name}{how}"
    return Text("\n".join([head, *(f"Note: {note}" for note in notes)]))
