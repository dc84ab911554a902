"""The constraint: a plan fits on its GPUs beside the KV cache that its requests need, or there is none."""

from collections.abc import Callable

from planner.base import Infeasible
from planner.cost.memory.case import Case, case_of
from planner.cost.memory.ledger import ledger_of
from planner.cost.memory.line import Ledger
from planner.cost.memory.nearest import nearest
from planner.problem import Problem

ProblemOfR = Callable[[int], Problem]
GROUPS = {  # how lines are told
    "expert weights": ("expert_weights",),
    "replicas": ("replica",),
    "attention, dense and other weights": (
        "attention", "dense", "shared", "router", "embedding", "head", "draft", "other_weights",
    ),
    "buffers": ("all_to_all", "transfer"),
    "kept by the engine": ("reserve",),
}  # fmt: skip


def within_memory(
    problem_of: ProblemOfR, engine: str | None, case_of_r: Callable[[int], Case], node_gpus: int = 8
) -> ProblemOfR:
    """The same question, Infeasible where weights, buffers and the KV cache that is needed do not fit."""

    def resolve(redundant: int) -> Problem:
        case = case_of_r(redundant)
        if ledger_of(case, engine).fits:
            return problem_of(redundant)
        raise Infeasible(too_little(case, engine, problem_of, node_gpus))

    return resolve


def does_not_fit(problem: Problem, engine: str | None) -> str:
    """Why a plan cannot be served, in one line; empty where it fits."""
    case = case_of(problem)
    if ledger_of(case, engine).fits:
        return ""
    return too_little(case, engine, None, len(problem.topology.nodes[0].gpus))


def too_little(
    case: Case, engine: str | None, problem_of: ProblemOfR | None = None, node_gpus: int = 8
) -> str:
    """What is missing, the nearest that fits, and where the memory goes: one line."""
    found = ledger_of(case, engine)
    way_out = nearest(case, engine, problem_of, node_gpus)
    missing = f"{found.missing_bytes / 1e9:.1f} GB of GPU memory are missing at R = {case.redundant}"
    return f"{missing}: {way_out}. {_held(case, found)}"


def _held(case: Case, found: Ledger) -> str:
    parts = grouped_bytes(found)
    held = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in parts.items() if size >= 5e7)
    left = max(found.kv_left_bytes, 0) / 1e9
    assumed = "" if case.workload.context_given else ", assumed"
    need = f"{found.planned_requests} requests of {found.context_tokens:,} tokens{assumed}"
    if found.kv_floor_bytes:
        need = "the floor"
    return (
        f"GPU {found.gpu} of {found.memory_bytes / 1e9:.1f} GB: {held}; "
        f"{left:.1f} GB left for the KV cache, {found.needed_bytes / 1e9:.1f} GB needed ({need})"
    )


def grouped_bytes(found: Ledger) -> dict[str, float]:
    """Bytes of the lines as people are told them."""
    sizes = {line.name: line.size_bytes for line in found.lines}
    return {group: sum(sizes.get(name, 0.0) for name in names) for group, names in GROUPS.items()}
