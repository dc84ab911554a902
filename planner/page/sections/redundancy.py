"""What R buys: the step that each number of redundant experts was predicted to take, and its memory."""

from planner.base import BadInput, human_bytes, human_seconds
from planner.page.charts import Bar, bars
from planner.page.document import paragraphs
from planner.page.html import Content, figure, tag
from planner.page.tables import table_of
from planner.page.told import Told
from planner.report.curve import CURVE_FIGURES

TITLE = "What R buys"
FIGURES = ("redundant", "slots_per_gpu", "fitted_seconds", "max_over_mean", "weights_bytes", "free_bytes")


def section(told: Told) -> Content:
    curve, chosen = told.value.get("redundant_curve"), told.problem.redundant
    if not curve:
        return paragraphs(
            f"R = {chosen} was given, so no others were tried: `moeplan solve --redundant auto` tries them."
        )
    for at, point in enumerate(curve):
        lacking = [name for name in FIGURES if point.get(name) is None]
        if lacking:
            raise BadInput(f"{told.file}: redundant_curve[{at}] has no {lacking[0]}; solve again")
    drawn, rows = [], []
    for at, point in enumerate(curve):
        redundant, fitted, unseen = (
            point.get(name) for name in ("redundant", "fitted_seconds", "held_out_seconds")
        )
        mark, of = " (chosen)" if redundant == chosen else "", f"redundant_curve.{at}"
        name = f"R = {redundant:g}"
        drawn.append(Bar(f"{name}{mark}", fitted, human_seconds(fitted), "plan" if mark else "other"))
        free = max(point["free_bytes"], 0)
        rows.append(
            [
                f"{redundant:g}{mark}",
                f"{point['slots_per_gpu']:g}",
                figure(human_seconds(fitted), fitted, f"{of}.fitted_seconds"),
                "-" if unseen is None else figure(human_seconds(unseen), unseen, f"{of}.held_out_seconds"),
                figure(f"{point['max_over_mean']:.4f}", point["max_over_mean"], f"{of}.max_over_mean"),
                figure(human_bytes(point["weights_bytes"]), point["weights_bytes"], f"{of}.weights_bytes"),
                figure(human_bytes(free), point["free_bytes"], f"{of}.free_bytes"),
            ]
        )
    return [
        paragraphs("Of a quick search, judged in expectation: the plan's own figures differ from these."),
        tag("div", bars("Predicted step by redundant experts", drawn), class_="scroll"),
        table_of(CURVE_FIGURES, rows, "Each R that was tried"),
    ]
