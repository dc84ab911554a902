"""Whether the same GPUs serve more as narrower groups side by side: one line for a plan.

A plan may gain much on the default of its own EP size and still lose to two groups of half of it, which no
bytes leave. The comparison is cheap: few replicas, a fast method, the same tokens a GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from planner.base import Infeasible
from planner.cost import TOLERANCE, WholeStep, cost, whole_step
from planner.engines import judge_launch
from planner.load import LoadProfile
from planner.plan import Plan
from planner.planning.groups import ep_sizes, groups_of
from planner.planning.solving import STOPPED_AFTER, ProblemOfR, quick_placement, stopped_plan
from planner.planning.worth import WORTH_IT
from planner.solvers import Search, Workforce
from planner.topology import Topology

METHOD = "refine"
MORE_SLOTS = 2  # a GPU, beyond the fewest, that are tried


@dataclass(frozen=True)
class Narrower:
    """The fastest of the narrower layouts."""

    groups: int
    ep: int
    redundant: int
    tokens_per_s_per_gpu: float
    gain: float  # in tokens/s over the plan's layout; below 0 where it serves a little less
    spared: int  # slots a GPU beside those of the experts, fewer than the plan has
    error: float | None  # by which the model may be off, where that is known

    @property
    def worth_it(self) -> bool:
        """Where it serves more, or as much as far as the model can tell, with fewer replicas."""
        return self.gain >= WORTH_IT or (self.spared > 0 and self.gain >= -self.doubt)

    @property
    def doubt(self) -> float:
        """Below it a difference is none."""
        return max(self.error or 0.0, TOLERANCE)

    def __str__(self) -> str:
        layout = f"{self.groups} x EP{self.ep} with R = {self.redundant} on the same GPUs"
        known = f"the model's error of {self.error:.0%}" if self.error else f"{self.doubt:.0%}"
        found = f"is predicted to serve {self.gain:.1%} more tokens/s"
        found += f", within {known}" if self.gain <= self.doubt else ""
        if self.gain < WORTH_IT:
            found = f"serves as many tokens/s within {known} ({self.gain:+.1%}), with fewer replicas"
        return f"WARNING: {layout} {found}: --ep {self.ep}, or `moeplan sweep` for all layouts"


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
    try:
        found = narrower(plan, ask)
    except KeyboardInterrupt:
        return stopped_plan(plan, STOPPED_AFTER)
    if found is None:
        return plan
    return replace(plan, origin=replace(plan.origin, notes=(*plan.origin.notes, str(found))))


def narrower(plan: Plan, ask: Callable[[Topology], Resolved]) -> Narrower | None:
    """The narrower layout that serves most, where it serves more than the plan does.

    On held-out load where the plan has some.
    """
    problem, engine = plan.problem, plan.origin.engine
    own = whole_step(problem, plan.held_out or plan.fitted, engine).tokens_per_s_per_gpu
    sizes = [size for size in ep_sizes(problem.topology) if size < problem.gpus]
    offers = [_offered(plan, size, own, ask) for size in sizes if size % problem.workload.attention_tp == 0]
    better = [offer for offer in offers if offer is not None and offer.worth_it]
    return max(better, key=lambda offer: (offer.gain, offer.ep), default=None)


def _offered(plan: Plan, ep: int, own: float, ask: Callable[[Topology], Resolved]) -> Narrower | None:
    """Groups of `ep` GPUs, by the slowest, with the fewest replicas within TOLERANCE of the most tokens/s;
    None where they do not fit, or the plan's engine would not serve them.
    """
    gpus = plan.problem.gpus
    asked = [ask(group) for group in groups_of(plan.problem.topology, ep)]
    found: list[tuple[int, WholeStep]] = []
    for more in range(MORE_SLOTS + 1):
        redundant = asked[0].least_redundant + more * ep
        steps = [_step(plan, one, redundant) for one in asked]
        if any(step is None for step in steps):
            break
        slowest = min((step for step in steps if step), key=lambda step: step.tokens_per_s_per_gpu)
        found.append((redundant, slowest))
    if not found:
        return None
    most = max(step.tokens_per_s_per_gpu for _, step in found)
    redundant, step = next(one for one in found if one[1].tokens_per_s_per_gpu >= most * (1 - TOLERANCE))
    tokens = step.tokens_per_s_per_gpu
    spared = plan.problem.redundant // gpus - redundant // ep
    return Narrower(gpus // ep, ep, redundant, tokens, tokens / own - 1, spared, step.error_share)


def _step(plan: Plan, asked: Resolved, redundant: int) -> WholeStep | None:
    """The step of one group; None where it does not fit or is not served."""
    engine = plan.origin.engine
    try:
        problem = asked.problem_of(redundant)
    except Infeasible:
        return None
    if engine and judge_launch(engine, problem).refused:
        return None
    placement = quick_placement(problem, Search(METHOD, workforce=Workforce(1)), engine)
    return whole_step(problem, cost(problem, placement, asked.held_out_load), engine)
