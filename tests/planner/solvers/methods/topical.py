"""Problems whose tokens follow topics, on nodes of any size."""

from dataclasses import replace

import numpy as np

from planner.load import LoadProfile, Trace
from planner.problem import Problem, Workload
from planner.topology import Fabric, Node, Topology
from tests.planner.machines import BY_HAND, GPU, flat_pcie, own_nics, switched
from tests.strategies import small_model


def uneven(*sizes: int) -> Topology:
    """Nodes with these numbers of GPUs."""
    nodes = tuple(
        Node((GPU,) * size, switched(list(range(size))), flat_pcie(size), own_nics(size)) for size in sizes
    )
    return Topology("uneven", nodes, Fabric("none", BY_HAND), "made up for tests")


def topical_tokens(
    rng: np.random.Generator, tokens: int, experts: int, top_k: int, topics: int
) -> np.ndarray:
    """Tokens of a topic prefer the same experts, and some experts are popular with all."""
    liking = (
        rng.normal(0, 0.5, experts) + rng.normal(0, 1.5, (topics, experts))[rng.integers(0, topics, tokens)]
    )
    return np.argsort(-(liking + rng.gumbel(size=(tokens, experts))), axis=1)[:, :top_k].astype(np.int32)


def topical_problem(
    topology: Topology,
    experts: int,
    slots_per_gpu: int,
    *,
    rule: str = "nearest",
    top_k: int = 2,
    tokens: int = 60,
    seed: int = 0,
) -> Problem:
    """Two layers with topical tokens in three sequences, transport `node`."""
    rng = np.random.default_rng(seed)
    experts_LTK = np.stack([topical_tokens(rng, tokens, experts, top_k, 3) for _ in range(2)])
    parts = np.split(experts_LTK, 3, axis=1)
    counts_WLE = np.array(
        [[np.bincount(ids_TK.ravel(), minlength=experts) for ids_TK in part] for part in parts]
    )
    load = LoadProfile(
        counts_WLE.astype(np.int64), (0, 1), "made for tests", trace=Trace(experts_LTK, (tokens // 3,) * 3)
    )
    model = replace(small_model(2, experts), top_k=top_k)
    return Problem(topology, model, load, Workload(4096, "prefill", transport="node"), slots_per_gpu, rule)
