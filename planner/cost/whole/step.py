"""The whole step of a plan: seconds by part, and what they come to for who waits and for who pays."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.cost.priced import Cost
from planner.cost.whole.asked import Asked, asked_of
from planner.cost.whole.first_token import ttft_terms
from planner.cost.whole.law import Calibration, Judged, calibration
from planner.cost.whole.terms import PARTS, TERMS, moe_seconds, step_terms
from planner.problem import Problem


@dataclass(frozen=True)
class WholeStep:
    """One step of an engine, predicted. Dispatch, compute and combine are calibrated here to whole steps:
    what engines hide behind other work is taken off, so they differ from those of the layers by themselves.
    """

    seconds: Mapping[str, float]  # by part: attention, dense, shared, head, dispatch, compute, combine,
    # prompts (of requests that begin, worked through beside decoding) and overhead
    tpot_seconds: float | None  # between two tokens of a request; None in prefill
    ttft_seconds: float  # to the first token, where the server has room for the request
    tokens_per_s_per_gpu: float  # output tokens in decode, prompt tokens in prefill
    error: str  # of tpot_seconds on this GPU, or that it was not judged
    error_share: float | None  # its mean on held-out measurements of this GPU; None where it was not judged
    ttft_error: str
    basis: str  # what the parts beside the experts rest on

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())


def whole_step(problem: Problem, cost: Cost, engine: str | None, *, disaggregated: bool = False) -> WholeStep:
    """The whole step of a plan with this cost. `disaggregated`: other GPUs work through the prompts."""
    known, asked = calibration(), asked_of(problem, disaggregated=disaggregated)
    values = {"gpu": _only_gpu(problem), "engine": engine, "weights": problem.model.weight_dtype}
    of_terms = known.tpot.seconds(step_terms(problem, asked, moe_seconds(problem, cost)), values)
    seconds = {
        part: sum(of_terms[term] for term, of_part in TERMS.items() if of_part == part) for part in PARTS
    }
    total = sum(seconds.values())
    return WholeStep(
        seconds=seconds,
        tpot_seconds=total if asked.decodes else None,
        ttft_seconds=sum(known.ttft.seconds(ttft_terms(problem, asked), values).values()),
        tokens_per_s_per_gpu=problem.workload.tokens_per_rank / total,
        error=_error(known, problem, asked, engine),
        error_share=_share(known, problem, asked),
        ttft_error=_error_on(known.ttft_errors, _only_gpu(problem)),
        basis="config" if problem.model.body else "assumed: attention and dense layers by rule of thumb",
    )


def _only_gpu(problem: Problem) -> str | None:
    """The GPU model of the machine; None where it is mixed."""
    names = {gpu.model.name for gpu in problem.topology.gpus}
    return names.pop() if len(names) == 1 else None


def _error_on(errors: Mapping[str, Judged], gpu: str | None) -> str:
    if gpu is None:
        return "not judged on a mixed machine"
    return errors[gpu].text(gpu) if gpu in errors else f"not judged on {gpu}: coefficients of all GPUs judged"


def _error(known: Calibration, problem: Problem, asked: Asked, engine: str | None) -> str:
    """What a reader should expect of the seconds, and where nothing was measured, that."""
    gpu = _only_gpu(problem)
    if not asked.decodes:
        return "not judged in prefill: coefficients of decode steps"
    said = _error_on(known.tpot_errors, gpu)
    if gpu not in known.tpot_errors:
        said += f"; a GPU left out of the fit was {known.unseen_gpu.mean_error:.0%} off"
    if problem.model.architecture not in known.architectures:
        said += f"; a model left out of the fit was {known.unseen_model.mean_error:.0%} off"
    if engine not in known.tpot.factors["engine"]:
        said += "; no step of this engine was measured"
    return said


def _share(known: Calibration, problem: Problem, asked: Asked) -> float | None:
    """A model that was not measured gets the error of one that was left out, where that is larger."""
    judged = known.tpot_errors.get(_only_gpu(problem) or "")
    if judged is None or not asked.decodes:
        return None
    measured = problem.model.architecture in known.architectures
    return judged.mean_error if measured else max(judged.mean_error, known.unseen_model.mean_error)
