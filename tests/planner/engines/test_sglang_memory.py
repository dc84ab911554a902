"""The ledger and SGLang's launch: --mem-fraction-static leaves the KV cache no less than the ledger says."""

import pytest

from planner.base import Infeasible
from planner.cost import ledger
from planner.engines import find_engine
from planner.engines.sglang.launch import Launch
from planner.model import model_names
from planner.planning import PlanRequest
from planner.planning.answer import resolve


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize("machine", ["hgx-h100:1", "hgx-h200:4", "gb200-nvl72"])
def test_a_launch_leaves_as_much_as_the_ledger_promises(machine: str, phase: str) -> None:
    """Of every model of the catalogue that fits; both phases in one server, whatever moves their tokens."""
    release, fitting = find_engine("sglang").RELEASES[-1], 0
    for name in model_names():
        asked = resolve(PlanRequest(name, machine, phase=phase, engine="sglang"))
        try:
            problem = asked.problem_of(asked.least_redundant)
        except Infeasible:
            continue
        found, room = ledger(problem, "sglang"), Launch(problem, release).room
        left = room.fraction * found.memory_bytes - found.weights_bytes
        assert left >= found.kv_left_bytes - 1, name
        fitting += 1
    assert fitting > 10
