"""What the study gives the planner: both laws, their errors by GPU, and of what was left out entirely."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.bench.whole_law import TPOT, TTFT, Target, errors, halves
from planner.bench.whole_terms import Measured
from planner.cost import Judged, Law

DIGITS = 4  # significant, of what ships


def calibrated(rows: Sequence[Measured], sliced: Sequence[Measured]) -> dict[str, Any]:
    """The content of planner/data/whole_step.yaml, its source apart. `sliced`: rows without expert
    parallelism, which nothing is fitted to.
    """
    architectures = sorted({one.row.model.architecture for one in halves(rows)[0]})
    laws = {target.name: _of(target, rows) for target in (TPOT, TTFT)}
    laws["tpot"]["without_ep"] = _by_gpu(TPOT, Law(**laws["tpot"]["law"]), sliced)
    return {**laws, "architectures": architectures}


def _of(target: Target, rows: Sequence[Measured]) -> dict[str, Any]:
    fitted, held_out = halves(target.kept(rows))
    law = _rounded(target.fit(fitted))
    return {
        "law": vars(law),
        "held_out": _by_gpu(target, law, held_out),
        "halves_swapped": _short(target.judged(target.fit(held_out), fitted)[0]),
        "model_left_out": _left_out(target, rows, lambda one: one.row.model.architecture),
        "gpu_left_out": _left_out(target, rows, lambda one: one.row.system),
    }


def _by_gpu(target: Target, law: Law, rows: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Errors of a law by GPU model, and the most GPUs of a row."""
    gpus = sorted({str(one.values["gpu"]) for one in rows})
    by_gpu = {gpu: [one for one in rows if one.values["gpu"] == gpu] for gpu in gpus}
    return {
        gpu: {**_short(target.judged(law, own)[0]), "most_gpus": max(one.row.gpus for one in own)}
        for gpu, own in by_gpu.items()
    }


def _left_out(
    target: Target, rows: Sequence[Measured], group_of: Callable[[Measured], str]
) -> dict[str, float]:
    """Errors on held-out rows, each predicted by a law that has seen no row of its group."""
    fitted, held_out = halves(target.kept(rows))
    predicted: list[float] = []
    took: list[float] = []
    for group in sorted({group_of(one) for one in held_out}):
        others = [one for one in fitted if group_of(one) != group]
        own = [one for one in held_out if group_of(one) == group]
        if others:
            predicted += map(target.predict(target.fit(others)), own)
            took += map(target.took, own)
    return _short(errors(predicted, took)[0])


def _rounded(law: Law) -> Law:
    """Coefficients as they are written down."""
    factors = {
        kind: {value: _digits(terms) for value, terms in values.items()}
        for kind, values in law.factors.items()
    }
    return Law(_digits(law.base), factors)


def _digits(terms: Mapping[str, float]) -> dict[str, float]:
    return {term: float(f"{value:.{DIGITS}g}") for term, value in terms.items()}


def _short(judged: Judged) -> dict[str, float]:
    return {
        "rows": judged.rows,
        "mean_error": round(judged.mean_error, DIGITS),
        "median_error": round(judged.median_error, DIGITS),
    }
