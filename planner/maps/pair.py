"""A prefill plan and a decode plan to the two halves of a disaggregated pair, and the router before them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.engines import Emission, find_engine, paired_engines
from planner.maps.emission import emit_plan
from planner.plan import SavedPlan, read_plan

ROUTER = "router.sh"
HALVES = ("prefill", "decode")


@dataclass(frozen=True)
class Pair:
    """The plan file and the emission of each half, by role, and the script that starts the router."""

    plans: Mapping[str, Path]
    emissions: Mapping[str, Emission]
    router: str


def emit_pair(plan_files: tuple[Path, ...], engine: str, **asked: Any) -> Pair:
    """Both halves of a pair; `asked` as for `emit_plan`.

    BadInput where the plans are not one of each phase and of one model, or the engine has no such pair.
    """
    saved = {path: read_plan(path) for path in plan_files}
    plans = _by_role(saved)
    if engine not in paired_engines():
        known = ", ".join(paired_engines())
        raise BadInput(
            f"{find_engine(engine).TITLE} is not started as a pair here; engines that are: {known}"
        )
    emissions = {role: emit_plan(plans[role], engine, role=role, **asked) for role in HALVES}
    problems = [saved[plans[role]].problem for role in HALVES]
    return Pair(plans, emissions, paired_engines()[engine].router_text(*problems))


def _by_role(saved: Mapping[Path, SavedPlan]) -> dict[str, Path]:
    plans = {plan.problem.workload.phase: path for path, plan in saved.items()}
    if sorted(plans) != sorted(HALVES):
        phases = ", ".join(f"{path} is for {plan.problem.workload.phase}" for path, plan in saved.items())
        raise BadInput(f"a pair needs one plan for prefill and one for decode; {phases}")
    names = sorted({plan.problem.model.name for plan in saved.values()})
    if len(names) > 1:
        raise BadInput(f"a pair serves one model; these plans are for {' and '.join(names)}")
    return plans
