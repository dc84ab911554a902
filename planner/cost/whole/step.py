"""The whole step of a plan: seconds by part, and what they come to for who waits and for who pays."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.cost.priced import Cost
from planner.cost.whole.asked import asked_of
from planner.cost.whole.doubt import Doubt, doubt, only_gpu
from planner.cost.whole.first_token import ttft_terms
from planner.cost.whole.law import calibration
from planner.cost.whole.terms import PARTS, TERMS, moe_seconds, step_terms
from planner.problem import Problem

PREFILL = Doubt("not judged in prefill: coefficients of decode steps", None)


@dataclass(frozen=True)
class WholeStep:
    """One step of an engine, predicted.

    Dispatch and combine are the plan's own; expert compute is calibrated to whole steps like the rest, so it
    differs from that of the layers by themselves.
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


def whole_step(
    problem: Problem, cost: Cost, engine: str | None, *, disaggregated: bool = False, sliced: bool = False
) -> WholeStep:
    """The whole step of a plan with this cost. `disaggregated`: other GPUs work through the prompts.

    `sliced`: the cost is that of experts without expert parallelism, and the error is theirs.
    """
    known, asked = calibration(), asked_of(problem, disaggregated=disaggregated)
    values = {"gpu": only_gpu(problem), "engine": engine, "weights": problem.model.weight_dtype}
    of_terms = known.tpot.law.seconds(step_terms(problem, asked, moe_seconds(problem, cost)), values)
    seconds = {
        part: sum(of_terms[term] for term, of_part in TERMS.items() if of_part == part) for part in PARTS
    }
    total = sum(seconds.values())
    off = doubt(known, known.tpot, problem, engine, sliced=sliced) if asked.decodes else PREFILL
    return WholeStep(
        seconds=seconds,
        tpot_seconds=total if asked.decodes else None,
        ttft_seconds=sum(known.ttft.law.seconds(ttft_terms(problem, asked), values).values()),
        tokens_per_s_per_gpu=problem.workload.tokens_per_rank / total,
        error=off.text,
        error_share=off.share,
        ttft_error=doubt(known, known.ttft, problem, engine).text,
        basis="config" if problem.model.body else "assumed: attention and dense layers by rule of thumb",
    )
