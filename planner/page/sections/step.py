"""Where the time of a whole step goes: the layers with experts, and everything beside them."""

from planner.base import human_seconds
from planner.cost import whole_step
from planner.page.charts import stacked
from planner.page.document import paragraphs
from planner.page.html import Content, figure
from planner.page.tables import table_of
from planner.page.told import Told
from planner.report.whole import duration

TITLE = "Whole step"


def section(told: Told) -> Content:
    found = whole_step(told.problem, told.judged, told.engine)
    parts = [(name, seconds) for name, seconds in found.seconds.items() if seconds]
    drawn = [(name, value, f"{value / found.total_seconds:.0%}") for name, value in parts]
    rows = [
        (name, figure(human_seconds(value), value), f"{value / found.total_seconds:.1%}")
        for name, value in parts
    ]
    rows.append(("sum", figure(human_seconds(found.total_seconds), found.total_seconds), "100.0%"))
    served = f"{found.tokens_per_s_per_gpu:,.0f} tokens/s a GPU"
    first = f"first token after {human_seconds(found.ttft_seconds)} ({found.ttft_error})"
    return [
        paragraphs(
            f"{duration(found)[0].upper()}{duration(found)[1:]}: {served}; {first}.",
            f"Error of the whole step: {found.error}. Parts beside the experts: {found.basis}. Dispatch, "
            "compute and combine are what engines do not hide behind other work.",
        ),
        stacked("Parts of a whole step", drawn),
        table_of(("part", "time", "share"), rows, "Predicted whole step"),
    ]
