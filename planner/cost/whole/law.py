"""The calibrated law: how much of each term a step takes, and how far it was off on steps it had not seen.

Coefficients are in planner/data/whole_step.yaml, made by `moeplan bench --study whole-step`. A GPU, engine
or weight dtype that is not among them gets those of all together.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from planner.base import data_file, read_yaml

Factors = Mapping[str, Mapping[str, Mapping[str, float]]]  # kind of factor, its value, term
AS_PLANNED = (
    "dispatch",
    "combine",
)  # taken as the plan's cost has them: what rows say of them is of one transport
GEMMS = ("dense", "shared", "head")  # share a coefficient: the rows do not tell them apart


@dataclass(frozen=True)
class Law:
    """seconds = sum over terms of base * what its factors make of it * term. Nothing is negative."""

    base: Mapping[str, float]
    factors: Factors

    def coefficients(self, values: Mapping[str, str | None]) -> dict[str, float]:
        """Of each term, for these values of the factors, like {"gpu": "H100-SXM-80GB"}."""
        found = dict(self.base)
        for kind, value in values.items():
            for term, times in self.factors.get(kind, {}).get(value or "", {}).items():
                found[term] *= times
        return found

    def seconds(self, terms: Mapping[str, float], values: Mapping[str, str | None]) -> dict[str, float]:
        """Seconds of each term."""
        found = self.coefficients(values)
        return {term: found.get(column(term), 1.0) * raw for term, raw in terms.items()}


def column(term: str) -> str:
    """The coefficient that a term has.

    >>> column("shared"), column("cache")
    ('gemms', 'cache')
    """
    return "gemms" if term in GEMMS else term


@dataclass(frozen=True)
class Judged:
    """How far predictions were off on steps that the law was not fitted to; shares of what was measured."""

    rows: int
    mean_error: float
    median_error: float
    most_gpus: int = 0  # that shared the experts

    def text(self, of: str, measurements: str = "held-out measurements") -> str:
        return (
            f"{of}: {self.mean_error:.0%} mean error, {self.median_error:.0%} median, "
            f"on {self.rows} {measurements} of up to {self.most_gpus} GPUs"
        )


@dataclass(frozen=True)
class Calibrated:
    """A law and how far it was off: on held-out rows of each GPU, and on what the fit had not seen at all."""

    law: Law
    errors: Mapping[str, Judged]
    unseen_model: Judged
    unseen_gpu: Judged
    errors_without_ep: Mapping[str, Judged]  # on rows whose experts are sliced, which nothing is fitted to


@dataclass(frozen=True)
class Calibration:
    """Both laws."""

    tpot: Calibrated
    ttft: Calibrated
    architectures: Collection[str]  # of the models among the rows
    source: str


@lru_cache(maxsize=1)
def calibration() -> Calibration:
    """What ships with moeplan."""
    return calibration_from_dict(read_yaml(data_file("whole_step.yaml")))


def calibration_from_dict(value: Mapping[str, Any]) -> Calibration:
    return Calibration(
        _calibrated(value["tpot"]), _calibrated(value["ttft"]), value["architectures"], value["source"]
    )


def _calibrated(value: Mapping[str, Any]) -> Calibrated:
    return Calibrated(
        law=Law(**value["law"]),
        errors={gpu: Judged(**one) for gpu, one in value["held_out"].items()},
        unseen_model=Judged(**value["model_left_out"]),
        unseen_gpu=Judged(**value["gpu_left_out"]),
        errors_without_ep={gpu: Judged(**one) for gpu, one in value.get("without_ep", {}).items()},
    )
