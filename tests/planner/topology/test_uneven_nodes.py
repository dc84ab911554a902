"""Nodes of unequal size, like 8 + 4 + 2 GPUs: every law and every method takes them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bounds import load_bound
from planner.cost import cost
from planner.plan import Origin
from planner.planning import make_plan
from planner.problem import TRANSPORTS, Problem, violations
from planner.solvers import Search, find_method
from planner.solvers.registry import method_names
from tests.planner.engines.examples import machine
from tests.planner.small import question

QUICK = [
    name for name in method_names() if name not in ("auto", "cpsat")
]  # the other two run CP-SAT: seconds, not milliseconds
RULES = ["even", "nearest", "nearest-static", "hashed", "round-robin", "fixed-by-source"]


@st.composite
def uneven(draw: st.DrawFn) -> Problem:
    """Two to four nodes of one to eight GPUs, some of them slow; any rule and transport."""
    nodes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=4))
    gpus = sum(nodes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    experts = draw(st.integers(2, 24))
    slots_per_gpu = draw(
        st.integers(-(-experts // gpus), min(experts, 6) if -(-experts // gpus) <= 6 else experts)
    )
    topology = machine(*nodes)
    if draw(st.booleans()):
        topology = topology.with_speeds({int(rng.integers(gpus)): 0.8})
    counts = (rng.lognormal(0, 1, experts) * 1000).astype(np.int64)
    rule, transport = draw(st.sampled_from(RULES)), draw(st.sampled_from(sorted(TRANSPORTS)))
    return question(
        counts, topology, slots_per_gpu, rule, top_k=min(2, experts), tokens_per_rank=64, transport=transport
    )


@settings(max_examples=60)
@given(problem=uneven(), name=st.sampled_from(QUICK))
def test_every_method_answers_and_the_laws_hold(problem: Problem, name: str) -> None:
    """No rule is broken, all assignments arrive, nothing is below the bound, and no time is negative or
    lost.
    """
    placement = find_method(name)(problem)
    assert violations(problem, placement) == []
    found = cost(problem, placement)
    sent = problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k
    assert found.load_LG.sum() == pytest.approx(sent)
    bound = load_bound(
        problem.shares_LE,
        problem.gpus,
        problem.slots_per_gpu,
        even=problem.replica_rule == "even",
        speed_G=problem.speed_G,
    )
    assert found.busy_LG.max() >= bound.load_L[0] * sent * (1 - 1e-9)
    assert np.isfinite(found.layer_seconds_L).all()
    assert 0 <= found.cross_node_share <= 1


@pytest.mark.parametrize("rule", ["even", "nearest-static"])
def test_auto_on_8_4_and_2(rule: str) -> None:
    """The whole way to a judged plan: no worse than the default, and balanced."""
    counts = (np.random.default_rng(5).lognormal(0, 1, 60) * 1000).astype(np.int64)
    problem = question(counts, machine(8, 4, 2), 6, rule, top_k=4, tokens_per_rank=128)
    plan = make_plan(lambda _: problem, problem.redundant, Search(), Origin())
    assert violations(problem, plan.placement) == []
    assert plan.fitted.total_seconds <= plan.baselines[0].fitted.total_seconds
    if rule == "even":
        assert plan.fitted.max_over_mean < 1.01


def test_transport_node_forwards_by_index_where_nodes_differ() -> None:
    """GPU 5 of the node of eight has no namesake on the node of two.

    Its tokens enter by GPU 5 mod 2, and none is lost.
    """
    problem = question([1] * 10, machine(8, 2), 1, transport="node", tokens_per_rank=100)
    found = cost(problem, find_method("linear")(problem))
    assert found.cross_node_share == pytest.approx(2 * 0.8 * 0.2)
    swapped = cost(replace(problem, topology=machine(2, 8)), find_method("linear")(problem))
    assert swapped.total_seconds == pytest.approx(found.total_seconds)
