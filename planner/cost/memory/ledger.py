"""The ledger: every use of a GPU's memory, and what is left for the KV cache."""

from planner.cost.memory import weights
from planner.cost.memory.buffers import all_to_all, transfer
from planner.cost.memory.case import Case, case_of
from planner.cost.memory.kv import kv_bytes
from planner.cost.memory.line import Ledger
from planner.cost.memory.reserve import reserve
from planner.problem import Problem


def ledger(problem: Problem, engine: str | None) -> Ledger:
    """What lies on each GPU; all hold as much, so the one with least memory keeps least."""
    return ledger_of(case_of(problem), engine)


def ledger_of(case: Case, engine: str | None) -> Ledger:
    lines = (
        *weights.slots(case),
        *weights.body(case, engine),
        all_to_all(case, engine),
        transfer(case, engine),
    )
    kept = reserve(case, engine, sum(line.size_bytes for line in lines))
    token_bytes, request_bytes, basis = kv_bytes(case)
    return Ledger(
        case.gpu,
        case.memory_bytes,
        (*lines, kept),
        token_bytes,
        request_bytes,
        basis,
        case.planned_requests,
        case.workload.context_tokens,
        case.kv_floor_bytes,
    )
