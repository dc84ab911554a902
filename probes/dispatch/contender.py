"""What a run compares: placements, each with the question that it answers."""

from dataclasses import dataclass, replace

from planner.base import BadInput
from planner.placement import Placement
from planner.problem import Problem


@dataclass(frozen=True, eq=False)
class Contender:
    """A placement, and the question that it answers: all of a run share model, load and machine."""

    problem: Problem
    placement: Placement

    def at_tokens(self, tokens: int) -> "Contender":
        workload = replace(self.problem.workload, tokens_per_rank=tokens)
        return replace(self, problem=replace(self.problem, workload=workload))


def contender_against(plan: Contender, other: Contender, where: str) -> Contender:
    """Another plan on the plan's machine, load and step, with its own placement and replica rule.

    BadInput where it answers another question.
    """
    mine, its = plan.problem, other.problem
    for name, have, had in (
        ("model", mine.model.name, its.model.name),
        ("layers", list(plan.placement.layer_ids), list(other.placement.layer_ids)),
        ("GPUs", mine.gpus, its.gpus),
        ("transport", mine.workload.transport, its.workload.transport),
    ):
        if have != had:
            raise BadInput(
                f"{where}: its {name} {_short(had)}, the plan's {_short(have)}; they cannot be compared"
            )
    problem = replace(its, topology=mine.topology, load=mine.load, workload=mine.workload)
    return replace(other, problem=problem)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
