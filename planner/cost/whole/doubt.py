"""Doubt: what a reader should expect of a prediction on this GPU, and where nothing was measured, that."""

from typing import NamedTuple

from planner.cost.whole.law import Calibrated, Calibration
from planner.problem import Problem


class Doubt(NamedTuple):
    text: str
    share: float | None  # mean error to expect; None where nothing was measured on this GPU


def only_gpu(problem: Problem) -> str | None:
    """The GPU model of the machine; None where it is mixed."""
    names = {gpu.model.name for gpu in problem.topology.gpus}
    return names.pop() if len(names) == 1 else None


WITHOUT_EP = "measurements without EP, none fitted,"


def doubt(
    known: Calibration, of: Calibrated, problem: Problem, engine: str | None, *, sliced: bool = False
) -> Doubt:
    """The error that was found on held-out measurements of this GPU, never that of another one; where experts
    are sliced, on those without expert parallelism.

    A model that was not among the measured ones gets the error of models that were left out of the fit.
    """
    gpu, unseen = only_gpu(problem), problem.model.architecture not in known.architectures
    judged = (of.errors_without_ep if sliced else of.errors).get(gpu or "")
    said = [_not_judged(of, gpu)]
    if judged:
        said = [judged.text(gpu or "", WITHOUT_EP) if sliced else judged.text(gpu or "")]
    share = judged.mean_error if judged else None
    if judged and problem.gpus > judged.most_gpus:
        said.append("wider was not measured")
    if unseen:
        said.append(f"models left out of the fit were {of.unseen_model.mean_error:.0%} off")
        share = max(share, of.unseen_model.mean_error) if share is not None else None
    if engine not in of.law.factors["engine"]:
        said.append(f"{engine} was not measured" if engine else "no engine named")
    return Doubt("; ".join(said), share)


def _not_judged(of: Calibrated, gpu: str | None) -> str:
    where = gpu or "a mixed machine"
    return f"not judged on {where} (GPUs left out of the fit were {of.unseen_gpu.mean_error:.0%} off)"
