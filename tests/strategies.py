"""Problems small enough for every method, by hand and at random.

Loads are made here; nothing of them was measured.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem import Problem, Survival, Workload, least_redundant
from planner.topology import Node, Topology
from tests.planner import small
from tests.planner.machines import GPU, flat_pcie, machine, own_nics, switched


def cluster(nodes: int, gpus_per_node: int) -> Topology:
    """Nodes of that many GPUs behind an NVLink switch, a NIC for each GPU."""
    islands = switched(list(range(gpus_per_node))) if gpus_per_node > 1 else switched([0])
    node = Node((GPU,) * gpus_per_node, islands, flat_pcie(gpus_per_node), own_nics(gpus_per_node))
    return machine(node, nodes)


def machine_of(sizes: Sequence[int]) -> Topology:
    """Nodes of these many GPUs each."""
    nodes = [cluster(1, size).nodes[0] for size in sizes]
    return replace(cluster(1, 1), nodes=tuple(nodes))


def small_model(layers: int, experts: int) -> ModelSpec:
    return small.small_model(experts, layers=layers, hidden=8, expert_intermediate=8, dispatch_width=8)


def problem_of(
    loads: Sequence[Sequence[int]], gpus: int, slots_per_gpu: int, *, nodes: int = 1, rule: str = "even"
) -> Problem:
    """The problem with one row of counts a layer."""
    tokens_WLE = np.array([loads], dtype=np.int64)
    _, layers, experts = tokens_WLE.shape
    load = LoadProfile(tokens_WLE, tuple(range(layers)), "made for tests")
    return Problem(
        cluster(nodes, gpus // nodes), small_model(layers, experts), load, Workload(), slots_per_gpu, rule
    )


@st.composite
def problems(draw: st.DrawFn, most_experts: int = 8, rules: Sequence[str] = ("even", "nearest")) -> Problem:
    """One to three layers; ties, zeros, layers without any load and heavy skew all come up."""
    nodes, gpus_per_node = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    experts = draw(st.integers(2, most_experts))
    gpus = nodes * gpus_per_node
    slots_per_gpu = draw(st.integers(-(-experts // gpus), experts))
    counts = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 100_000))
    row = st.one_of(
        st.just([0] * experts), st.just([7] * experts), st.lists(counts, min_size=experts, max_size=experts)
    )
    loads = draw(st.lists(row, min_size=1, max_size=3))
    return problem_of(loads, gpus, slots_per_gpu, nodes=nodes, rule=draw(st.sampled_from(list(rules))))


def survivals() -> st.SearchStrategy[Survival]:
    return st.sampled_from([Survival(gpus=1), Survival(gpus=2), Survival(node=True)])


@st.composite
def surviving_problems(
    draw: st.DrawFn, most_experts: int = 8, rules: Sequence[str] = ("even", "nearest")
) -> Problem:
    """Feasible problems that ask to survive losses, on nodes of equal and of unequal size."""
    survive = draw(survivals())
    least_nodes, least_gpus = (2, 2) if survive.node else (1, survive.least_replicas)
    some_sizes = st.lists(st.integers(1, 3), min_size=least_nodes, max_size=3)
    sizes = draw(some_sizes.filter(lambda sizes: sum(sizes) >= least_gpus))
    topology = machine_of(sizes)
    model = small_model(draw(st.integers(1, 2)), draw(st.integers(2, most_experts)))
    least = (model.experts + least_redundant(model, topology, survive)) // topology.gpu_count
    counts = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 100_000))
    row = st.lists(counts, min_size=model.experts, max_size=model.experts)
    loads = draw(st.lists(row, min_size=model.layers, max_size=model.layers))
    load = LoadProfile(np.array([loads], dtype=np.int64), tuple(range(model.layers)), "made for tests")
    slots = draw(st.integers(least, model.experts))
    rule = draw(st.sampled_from(list(rules)))
    return Problem(topology, model, load, Workload(), slots, rule, survive=survive)
