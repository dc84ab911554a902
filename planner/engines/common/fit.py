"""The part of the judge of launches that is the same for every engine: does the plan fit on its GPUs?"""

from planner.cost import does_not_fit, ledger
from planner.engines.common.verdict import Finding
from planner.problem import Problem

SOURCE = "moeplan's ledger of memory"


def judge_fit(engine: str, problem: Problem) -> Finding:
    """Whether weights, buffers and the KV cache of the planned requests fit; refused with what would."""
    why = does_not_fit(problem, engine)
    if why:
        return Finding("memory-fits", why, SOURCE, refused=True)
    found = ledger(problem, engine)
    assumed = "" if problem.workload.context_given else " (assumed)"
    needed = f"the floor of {found.kv_floor_bytes / 1e9:g} GB is kept"
    if not found.kv_floor_bytes:
        needed = f"{found.planned_requests} are planned"
    text = f"a GPU has room for {found.requests} requests of {found.context_tokens:,} tokens{assumed}"
    return Finding("memory-fits", f"{text}; {needed}", SOURCE)
