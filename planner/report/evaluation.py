"""A plan judged anew, as text and a table: for `moeplan evaluate`."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from planner.cost import BestSplit, Cost
from planner.problem import Problem
from planner.report.costs import cost_cells, table_of_costs
from planner.report.tables import table_of


def cost_report(problem: Problem, found: Cost, notes: tuple[str, ...]) -> RenderableType:
    """One placement on one load."""
    row = (problem.replica_rule, problem.workload.transport, *cost_cells(found))
    return Group(_judged_on_load(problem, notes), table_of_costs(("rule", "transport"), [row]))


def engines_report(found: Mapping[str, tuple[Problem, Cost]], notes: tuple[str, ...]) -> RenderableType:
    """One placement under every engine's rule, transport and dtypes, for `--all-engines`."""
    rows = [
        (name, problem.replica_rule, problem.workload.transport, *cost_cells(priced))
        for name, (problem, priced) in found.items()
    ]
    problem = next(iter(found.values()))[0]
    return Group(_judged_on_load(problem, notes), table_of_costs(("engine", "rule", "transport"), rows))


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


def _judged_on_load(problem: Problem, notes: tuple[str, ...]) -> Text:
    return _judged(problem, f", load: {problem.load.source}", notes)


def _judged(problem: Problem, how: str, notes: tuple[str, ...]) -> Text:
    head = f"{problem.model.name} on {problem.topology.name}{how}"
    return Text("\n".join([head, *(f"Note: {note}" for note in notes)]))
