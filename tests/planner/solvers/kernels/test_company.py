"""A layer's row does not depend on which other layers are solved with it.

That is what lets layers be dealt out to processes.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.load import LoadProfile
from planner.problem import Problem, Workload, layers_of
from planner.solvers import find_method
from planner.solvers.registry import method_names
from planner.topology import read_topology
from tests.planner.small import small_model
from tests.strategies import problems

QUICK = [name for name in method_names() if name not in {"auto", "cpsat"}]


def skewed(layers: int, experts: int, slots_per_gpu: int, machine: str, rule: str = "even") -> Problem:
    """Lognormal counts, some layers much more skewed than others, one silent."""
    draw = np.random.default_rng(11)
    tokens_LE = draw.lognormal(0, draw.uniform(0.1, 2.0, (layers, 1)), (layers, experts)) * 1000
    tokens_LE[layers // 2] = 0
    load = LoadProfile(tokens_LE.astype(np.int64)[None], tuple(range(layers)), "made up for tests")
    return Problem(
        read_topology(machine), small_model(experts, 2, layers), load, Workload(), slots_per_gpu, rule
    )


def alone(problem: Problem, name: str) -> list[list[int]]:
    rows = range(len(problem.model.placed_layer_ids))
    return [find_method(name)(layers_of(problem, [row])).expert_LP[0].tolist() for row in rows]


@pytest.mark.parametrize("name", QUICK)
@given(problem=problems())
def test_small_layers_keep_no_company(name: str, problem: Problem) -> None:
    """Solved one by one, layers get the rows that they get together; any rule, nodes of any size."""
    assert alone(problem, name) == find_method(name)(problem).expert_LP.tolist()


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("rule", ["even", "nearest"])
def test_larger_layers_keep_no_company(name: str, rule: str) -> None:
    """Shapes at which kernels share work over layers: swaps between many GPUs, spread over nodes, moves of
    replicas.
    """
    problem = skewed(7, 48, 4, "hgx-h100:2", rule)
    assert alone(problem, name) == find_method(name)(problem).expert_LP.tolist()


@pytest.mark.parametrize("name", ["auto", "cpsat"])
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_exact_methods_keep_no_company(name: str, seed: int) -> None:
    """CP-SAT's effort for a layer follows from the model's size, whichever layers are at hand.

    Two layers of equal load are solved once or twice alike.
    """
    counts_LE = np.random.default_rng(seed).integers(1, 100, (3, 5))
    counts_LE[2] = counts_LE[0]
    load = LoadProfile(counts_LE[None], (0, 1, 2), "made up for tests")
    problem = Problem(read_topology("hgx-h100:1x3"), small_model(5, 2, 3), load, Workload(), 2)
    assert alone(problem, name) == find_method(name)(problem).expert_LP.tolist()


def test_large_layers_of_cpsat_keep_no_company() -> None:
    """Above the size that is proven whole: the rounds of a layer follow from the model's size too."""
    problem = skewed(3, 90, 14, "hgx-h100:1x7")
    assert alone(problem, "cpsat") == find_method("cpsat")(problem).expert_LP.tolist()
