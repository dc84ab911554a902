"""Whether the same GPUs serve more as narrower groups side by side: one line for a plan.

A plan may gain much on the default of its own EP size and still lose to two groups of half of it, which no
bytes leave. The comparison is cheap: the fewest replicas, a fast method, the same tokens a GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from planner.base import Infeasible
from planner.cost import cost, ledger
from planner.load import LoadProfile
from planner.plan import Plan
from planner.planning.groups import ep_sizes, groups_of
from planner.planning.solving import ProblemOfR, quick_placement
from planner.planning.whole import step_of
from planner.solvers import Search, Workforce
from planner.topology import Topology

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


class Resolved(Protocol):
    """The plan's own question about one group's machine, R open."""

    @property
    def problem_of(self) -> ProblemOfR: ...
    @property
    def least_redundant(self) -> int: ...
    @property
    def held_out_load(self) -> LoadProfile | None: ...


def with_narrower(plan: Plan, ask: Callable[[Topology], Resolved]) -> Plan:
    """The plan, and a note where a narrower layout is predicted to serve more.

    None is looked for where the plan promises what groups would not: survival, or joined GPUs.
    """
    if plan.problem.survive is not None or plan.problem.resplittable or plan.origin.stopped:
        return plan
    found = narrower(plan, ask)
    if found is None:
        return plan
    return replace(plan, origin=replace(plan.origin, notes=(*plan.origin.notes, str(found))))


def narrower(plan: Plan, ask: Callable[[Topology], Resolved]) -> Narrower | None:
    """The narrower layout that serves most, where it serves more than the plan does.

    On held-out load where the plan has some.
    """
    problem, engine = plan.problem, plan.origin.engine
    own = step_of(problem, plan.held_out or plan.fitted, engine).tokens_per_s_per_gpu
    sizes = [size for size in ep_sizes(problem.topology) if size < problem.gpus]
    offers = [_offered(plan, size, own, ask) for size in sizes if size % problem.workload.attention_tp == 0]
    better = [offer for offer in offers if offer is not None and offer.gain >= WORTH]
    return max(better, key=lambda offer: (offer.gain, offer.ep), default=None)


def _offered(plan: Plan, ep: int, own: float, ask: Callable[[Topology], Resolved]) -> Narrower | None:
    """Groups of `ep` GPUs, by the slowest; None where they do not fit."""
    engine, steps, least = plan.origin.engine, [], 0
    for group in groups_of(plan.problem.topology, ep):
        try:
            asked = ask(group)
            least = asked.least_redundant
            problem = asked.problem_of(least)
        except Infeasible:
            return None
        if ledger(problem, engine).kv_left_bytes <= 0:
            return None
        placement = quick_placement(problem, Search(METHOD, workforce=Workforce(1)), engine)
        steps.append(step_of(problem, cost(problem, placement, asked.held_out_load), engine))
    slowest = min(steps, key=lambda step: step.tokens_per_s_per_gpu)
    tokens = slowest.tokens_per_s_per_gpu
    return Narrower(plan.problem.gpus // ep, ep, least, tokens, tokens / own - 1, slowest.error)
