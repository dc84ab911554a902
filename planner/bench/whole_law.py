"""The law fitted to measured steps, the split it is fitted on, and errors of its predictions."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from statistics import median

import numpy as np

from planner.bench.whole_fit import fit
from planner.bench.whole_terms import Measured
from planner.cost import JUDGED_REQUESTS, TERMS, TTFT_TERMS, Judged, Law, column

FACTORS = ("gpu", "engine", "weights")
STEP_COLUMNS = tuple(dict.fromkeys(map(column, TERMS)))
SPLIT = "fitted where the SHA-256 of a configuration is even, judged where it is odd"

Predict = Callable[[Measured], float]


def halves(rows: Iterable[Measured]) -> tuple[list[Measured], list[Measured]]:
    """(fitted, held out). All measurements of one configuration are on one side."""
    sides: tuple[list[Measured], list[Measured]] = ([], [])
    for one in rows:
        digest = hashlib.sha256(one.row.configuration.encode()).digest()
        sides[digest[-1] % 2].append(one)
    return sides


def fit_step(rows: Sequence[Measured]) -> Law:
    """The law of the time of a step."""
    terms_NT = np.array([[_sum(one.step, name) for name in STEP_COLUMNS] for one in rows])
    return _fit(rows, terms_NT, [one.row.tpot_seconds for one in rows], STEP_COLUMNS)


def fit_first_token(rows: Sequence[Measured]) -> Law:
    """The law of the time to the first token, of the rows without a queue."""
    kept = unqueued(rows)
    terms_NT = np.array([[one.first_token[name] for name in TTFT_TERMS] for one in kept])
    return _fit(kept, terms_NT, [one.row.ttft_seconds for one in kept], TTFT_TERMS)


def unqueued(rows: Iterable[Measured]) -> list[Measured]:
    """Of servers that do prompts and decoding on the same GPUs, and have few requests open."""
    return [
        one
        for one in rows
        if not one.row.disaggregated and one.row.requests * one.row.groups <= JUDGED_REQUESTS
    ]


def step_seconds(law: Law) -> Predict:
    return lambda one: sum(law.seconds(one.step, one.values).values())


def first_token_seconds(law: Law) -> Predict:
    return lambda one: sum(law.seconds(one.first_token, one.values).values())


def errors(predicted: Sequence[float], took: Sequence[float]) -> tuple[Judged, float]:
    """(absolute errors, bias), shares of what was measured."""
    if not took:
        return Judged(0, 0.0, 0.0), 0.0
    misses = [guess / seconds - 1 for guess, seconds in zip(predicted, took, strict=True)]
    sizes = [abs(miss) for miss in misses]
    return Judged(len(sizes), sum(sizes) / len(sizes), median(sizes)), sum(misses) / len(misses)


def _sum(terms: dict[str, float], name: str) -> float:
    return sum(seconds for term, seconds in terms.items() if column(term) == name)


def _fit(
    rows: Sequence[Measured],
    terms_NT: "np.typing.NDArray[np.float64]",
    took: list[float],
    names: Sequence[str],
) -> Law:
    factors = {factor: [str(one.values[factor]) for one in rows] for factor in FACTORS}
    return Law(*fit(terms_NT, np.array(took), names, factors))
