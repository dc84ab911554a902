"""Whether the same GPUs serve more as narrower groups side by side: one line for a plan.

A plan may gain much on the default of its own EP size and still lose to two groups of half of it, which no
bytes leave. The comparison is cheap: the fewest replicas, a fast method, the same tokens a GPU.
"""

from dataclasses import dataclass, replace

from planner.base import Infeasible
from planner.cost import cost, ledger
from planner.plan import Plan
from planner.planning.groups import ep_sizes, groups_of
from planner.planning.solving import quick_placement
from planner.planning.whole import step_of
from planner.problem import Problem, least_redundant
from planner.solvers import Search, Workforce

METHOD = "refine"
WORTH = 0.01  # of the tokens; less is not worth another layout


@dataclass(frozen=True)
class Narrower:
    """The fastest of the narrower layouts."""

    groups: int
    ep: int
    redundant: int
    tokens_per_s_per_gpu: float
    gain: float  # in tokens/s over the plan's layout
    error: float | None  # by which the model may be off, where that is known

    def __str__(self) -> str:
        within = self.error is not None and self.gain <= self.error
        doubt = f", within the model's error of {self.error:.0%}" if within else ""
        return (
            f"{self.groups} x EP{self.ep} with R = {self.redundant} on the same GPUs is predicted to serve "
            f"{self.gain:.1%} more tokens/s{doubt}: --ep {self.ep}, or `moeplan sweep` for all layouts"
        )


def narrower(plan: Plan) -> Narrower | None:
    """The narrower layout that serves most, where it serves more than the plan does.

    On held-out load where the plan has some. None where the plan promises what groups would not: survival,
    or joined GPUs.
    """
    problem, engine = plan.problem, plan.origin.engine
    if problem.survive is not None or problem.resplittable:
        return None
    own = step_of(problem, plan.held_out or plan.fitted, engine).tokens_per_s_per_gpu
    best: Narrower | None = None
    for ep in (size for size in ep_sizes(problem.topology) if size < problem.gpus):
        offered = _offered(plan, ep, own)
        if offered and offered.gain >= WORTH and (best is None or offered.gain > best.gain):
            best = offered
    return best


def _offered(plan: Plan, ep: int, own: float) -> Narrower | None:
    """Groups of `ep` GPUs, by the slowest; None where they do not fit."""
    problem, engine = plan.problem, plan.origin.engine
    steps = []
    for group in groups_of(problem.topology, ep):
        least = least_redundant(problem.model, group, None)
        slots = (problem.model.experts + least) // ep
        try:
            asked: Problem = replace(problem, topology=group, slots_per_gpu=slots)
        except Infeasible:
            return None
        if ledger(asked, engine).kv_left_bytes <= 0:
            return None
        placement = quick_placement(asked, Search(METHOD, workforce=Workforce(1)), engine)
        steps.append(step_of(asked, cost(asked, placement, plan.held_out_load), engine))
    slowest = min(steps, key=lambda step: step.tokens_per_s_per_gpu)
    tokens = slowest.tokens_per_s_per_gpu
    return Narrower(problem.gpus // ep, ep, least, tokens, tokens / own - 1, slowest.error)
