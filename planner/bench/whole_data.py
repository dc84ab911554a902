"""What the study gives the planner: both laws, their errors by GPU, and of what was left out entirely."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.bench.whole_law import (
    Predict,
    errors,
    first_token_seconds,
    fit_first_token,
    fit_step,
    halves,
    step_seconds,
    unqueued,
)
from planner.bench.whole_terms import Measured
from planner.cost import Judged, Law

DIGITS = 4  # significant, of coefficients that ship


def calibrated(rows: Sequence[Measured]) -> dict[str, Any]:
    """The content of planner/data/whole_step.yaml."""
    fitted, held_out = halves(rows)
    step, first_token = rounded(fit_step(fitted)), rounded(fit_first_token(fitted))
    return {
        "tpot": {
            "law": vars(step),
            "held_out": by_gpu(held_out, step_seconds(step), tpot),
            "halves_swapped": vars(judged(held_out, fitted)),
            "model_left_out": vars(left_out(rows, lambda one: one.row.model.architecture)),
            "gpu_left_out": vars(left_out(rows, lambda one: one.row.system)),
        },
        "ttft": {
            "law": vars(first_token),
            "held_out": by_gpu(unqueued(held_out), first_token_seconds(first_token), ttft),
        },
        "architectures": sorted({one.row.model.architecture for one in fitted}),
    }


def tpot(one: Measured) -> float:
    return one.row.tpot_seconds


def ttft(one: Measured) -> float:
    return one.row.ttft_seconds


def by_gpu(rows: Sequence[Measured], predict: Predict, took: Callable[[Measured], float]) -> dict[str, Any]:
    """Errors on the rows of each GPU model."""
    gpus = sorted({str(one.values["gpu"]) for one in rows})
    found = {}
    for gpu in gpus:
        own = [one for one in rows if one.values["gpu"] == gpu]
        found[gpu] = vars(_short(errors(list(map(predict, own)), list(map(took, own)))[0]))
    return found


def left_out(rows: Sequence[Measured], group_of: Callable[[Measured], str]) -> Judged:
    """Errors on held-out rows, each predicted by a law that has seen no row of its group."""
    fitted, held_out = halves(rows)
    predicted: list[float] = []
    took: list[float] = []
    for group in sorted({group_of(one) for one in held_out}):
        others = [one for one in fitted if group_of(one) != group]
        own = [one for one in held_out if group_of(one) == group]
        if others:
            predicted += map(step_seconds(fit_step(others)), own)
            took += map(tpot, own)
    return _short(errors(predicted, took)[0])


def judged(fitted: Sequence[Measured], held_out: Sequence[Measured]) -> Judged:
    """Errors on some rows of a law that is fitted to others."""
    predicted = list(map(step_seconds(fit_step(fitted)), held_out))
    return _short(errors(predicted, list(map(tpot, held_out)))[0])


def rounded(law: Law) -> Law:
    """Coefficients as they are written down."""
    return Law(
        _rounded(law.base),
        {
            kind: {value: _rounded(terms) for value, terms in values.items()}
            for kind, values in law.factors.items()
        },
    )


def _rounded(terms: Mapping[str, float]) -> dict[str, float]:
    return {term: float(f"{value:.{DIGITS}g}") for term, value in terms.items()}


def _short(judged: Judged) -> Judged:
    return Judged(judged.rows, round(judged.mean_error, DIGITS), round(judged.median_error, DIGITS))
