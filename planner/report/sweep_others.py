"""What the answer of a sweep says of the other rows: wider or narrower ones, and those with or without EP."""

from planner.base import human_seconds
from planner.planning import Figures, Ranked, Standing, SweepRow

BAD = 0.3  # mean error of rows without expert parallelism that are not to be chosen by


def figures_of(row: SweepRow) -> Figures:
    assert row.figures is not None  # of a row that fits
    return row.figures


def named(row: SweepRow) -> str:
    """A row by its layout, like '2 x EP8, R = 0'."""
    if row.point.sliced:
        apart = row.point.ep // row.point.attention_tp
        return row.point.layout + (f", attention DP{apart}" if apart > 1 else "")
    shared = f", attention TP{row.point.attention_tp}" if row.point.attention_tp > 1 else ""
    redundant = row.figures.redundant if row.figures else row.point.redundant
    return f"{row.point.layout}, R = {redundant}{shared}"


def against(rows: list[Ranked], best: Ranked, *, wider: bool) -> list[str]:
    """What is to be said of the best of the wider layouts, or of the narrower: one clause or none."""
    ep = best.row.point.ep
    others = [one for one in _beside_it(rows, best) if one.row.point.sliced == best.row.point.sliced]
    others = [one for one in others if (one.row.point.ep > ep if wider else one.row.point.ep < ep)]
    if not others:
        return []
    if all(one.row.figures is None for one in others):
        near = min(others, key=lambda one: abs(one.row.point.ep - ep))
        return [f"{near.row.point.layout} does not fit"]
    return [_beside(others[0], figures_of(best.row), wider=wider)]  # ranked, and those that fit come first


def ep_or_not(rows: list[Ranked], best: Ranked) -> list[str]:
    """What is to be said of the best layout without expert parallelism where the answer has it, or with it
    where the answer does without: one clause or none.
    """
    others = [one for one in _beside_it(rows, best) if one.row.point.sliced != best.row.point.sliced]
    if not others:
        return []
    other, name = others[0], "with EP" if best.row.point.sliced else "without EP"
    if other.row.figures is None:
        return [f"{name} nothing fits"]
    if other.standing == Standing.UNSERVED and best.standing != Standing.UNSERVED:
        return [f"no engine serves it {name}"]
    what = f"{name} ({named(other.row)})"
    error = max(figures_of(one.row).step.error_share or 0.0 for one in (other, best))
    if other.tie and error > BAD:
        return [f"{what} cannot be told apart, predictions are {error:.0%} off"]
    if other.tie:
        return [f"{what} as many within the model's error"]
    if other.standing == Standing.SLOW and best.standing == Standing.MEETS:
        return [f"{what} {step_of(other.row)}, too slow"]
    change = other.row.figures.tokens_per_s_per_gpu / figures_of(best.row).tokens_per_s_per_gpu - 1
    return [f"{what} {abs(change):.0%} {'more' if change > 0 else 'fewer'} tokens/s"]


def _beside_it(rows: list[Ranked], best: Ranked) -> list[Ranked]:
    """Those of the same machine."""
    return [one for one in rows if one.row.point.machine == best.row.point.machine]


def _beside(other: Ranked, best: Figures, *, wider: bool) -> str:
    layout, figures = other.row.point.layout, figures_of(other.row)
    if other.standing == Standing.UNSERVED:
        return f"no engine serves {layout}"
    full = figures.full_fabric
    if wider and full is not None and full > best.tokens_per_s_per_gpu:
        return f"{layout} needs a 1:1 fabric"
    if other.tie:
        return f"{layout} is as good within the model's error"
    change = figures.tokens_per_s_per_gpu / best.tokens_per_s_per_gpu - 1
    return f"{layout} {'gains nothing' if wider else 'is slower'} ({change:+.0%})"


def step_of(row: SweepRow) -> str:
    name = "TPOT" if row.point.phase == "decode" else "a step"
    return f"{name} {human_seconds(figures_of(row).step.total_seconds)}"
