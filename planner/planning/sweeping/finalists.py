"""The best few rows placed anew by the whole portfolio, within a limit of time: rows may then differ from run
to run.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from planner.planning.request import PlanRequest
from planner.planning.sweeping.points import Layout
from planner.planning.sweeping.pricing import Job, priced
from planner.planning.sweeping.ranking import Ranked, Standing
from planner.planning.sweeping.row import Row
from planner.solvers import Progress, Search, Workforce

FINALISTS = 3  # of a phase
METHOD = "auto"


def placed_anew(
    ranking: Sequence[Ranked],
    layouts: Sequence[Layout],
    base: PlanRequest,
    budget_seconds: float,
    progress: Progress | None,
) -> list[Row]:
    """The rows, the first FINALISTS of those with experts to place placed by `auto` where there was time."""
    stop = time.monotonic() + budget_seconds
    layout_of = {point: layout for layout in layouts for point in layout.points}
    rows = [one.row for one in ranking]
    placed = [number for number, one in enumerate(ranking) if not one.row.point.sliced][:FINALISTS]
    for done, number in enumerate(placed):
        one = ranking[number]
        left = stop - time.monotonic()
        if one.standing == Standing.DOES_NOT_FIT or one.row.figures is None or left <= 0:
            break
        if progress:
            progress(done / FINALISTS, f"{one.row.point.layout} by the whole portfolio")
        chosen = replace(one.row.point, redundant=one.row.figures.redundant)
        layout = replace(layout_of[one.row.point], points=(chosen,))
        search = Search(METHOD, base.seed, left, workforce=Workforce(base.workers, base.ray))
        (found,) = priced(Job(base, layout, search))
        if found.figures is not None:
            rows[number] = Row(one.row.point, found.figures)
    return rows
