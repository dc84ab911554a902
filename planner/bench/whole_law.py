"""The law fitted to measured steps, the split it is fitted on, and errors of its predictions."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from planner.bench.whole_fit import fit
from planner.bench.whole_terms import Measured
from planner.cost import AS_PLANNED, JUDGED_REQUESTS, TERMS, TTFT_TERMS, Judged, Law, column

FACTORS = ("gpu", "engine", "weights")
STEP_COLUMNS = tuple(dict.fromkeys(column(term) for term in TERMS if term not in AS_PLANNED))
SPLIT = "fitted where the SHA-256 of a configuration is even, judged where it is odd"

Predict = Callable[[Measured], float]
Took = Callable[[Measured], float]


def halves(rows: Iterable[Measured]) -> tuple[list[Measured], list[Measured]]:
    """(fitted, held out). All measurements of one configuration are on one side."""
    sides: tuple[list[Measured], list[Measured]] = ([], [])
    for one in rows:
        digest = hashlib.sha256(one.row.configuration.encode()).digest()
        sides[digest[-1] % 2].append(one)
    return sides


@dataclass(frozen=True)
class Target:
    """One of the two times that servers were measured for: its law, and the rows that it is of."""

    name: str
    columns: tuple[str, ...]
    ridges: tuple[float, float]  # of the base, of factors
    terms: Callable[[Measured], Mapping[str, float]]
    took: Took
    kept: Callable[[Iterable[Measured]], list[Measured]] = list

    def fit(self, rows: Iterable[Measured]) -> Law:
        kept = self.kept(rows)
        terms_NT = np.array([[_sum(self.terms(one), name) for name in self.columns] for one in kept])
        factors = {factor: [str(one.values[factor]) for one in kept] for factor in FACTORS}
        took_N = np.array([self.took(one) for one in kept])
        fixed_N = np.array([sum(self.terms(one).get(term, 0.0) for term in AS_PLANNED) for one in kept])
        return Law(*fit(terms_NT, took_N, self.columns, factors, self.ridges, fixed_N))

    def predict(self, law: Law) -> Predict:
        return lambda one: sum(law.seconds(self.terms(one), one.values).values())

    def judged(self, law: Law, rows: Iterable[Measured]) -> tuple[Judged, float]:
        """(absolute errors, bias) on the rows that the target is of."""
        kept = self.kept(rows)
        return errors(list(map(self.predict(law), kept)), list(map(self.took, kept)))


def unqueued(rows: Iterable[Measured]) -> list[Measured]:
    """Of servers that do prompts and decoding on the same GPUs, and have few requests open."""
    return [
        one
        for one in rows
        if not one.row.disaggregated and one.row.requests * one.row.groups <= JUDGED_REQUESTS
    ]


def errors(predicted: Sequence[float], took: Sequence[float]) -> tuple[Judged, float]:
    """(absolute errors, bias), shares of what was measured."""
    if not took:
        return Judged(0, 0.0, 0.0), 0.0
    misses = [guess / seconds - 1 for guess, seconds in zip(predicted, took, strict=True)]
    sizes = [abs(miss) for miss in misses]
    return Judged(len(sizes), sum(sizes) / len(sizes), median(sizes)), sum(misses) / len(misses)


def _sum(terms: Mapping[str, float], name: str) -> float:
    return sum(seconds for term, seconds in terms.items() if column(term) == name)


# Ridges are chosen on the fitted half alone, by fourfold and leave-one-model-out.
TPOT = Target("tpot", STEP_COLUMNS, (2.0, 60.0), lambda one: one.step, lambda one: one.row.tpot_seconds)
TTFT = Target(
    "ttft", TTFT_TERMS, (2.0, 10.0), lambda one: one.first_token, lambda one: one.row.ttft_seconds, unqueued
)
