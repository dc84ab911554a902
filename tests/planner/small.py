"""Questions and placements small enough to count by hand, for the tests of the laws.

The machine is tests/data/two-nodes.yaml unless another is given.

Shapes: N placements, W windows, L layers, E experts, G GPUs, S slots a GPU, P slots.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import read_yaml
from planner.load import LoadProfile, Trace
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.topology import Topology, topology_from_dict
from tests.places import ROOT

Ints = npt.NDArray[np.int64]

TWO_NODES = ROOT / "tests/data" / "two-nodes.yaml"
COUNTS = [2, 2, 1, 1]  # the load that the file's plan is made for
BEST_ROW = [0, 2, 1, 3, 0, 2, 1, 3]  # the plan in the file's comment


def two_nodes(evidence: str = "assumed") -> Topology:
    """The hand-solved machine; its links may be said to be measured."""
    data = read_yaml(TWO_NODES)
    for link in (data["nodes"][0]["nvlink"]["islands"][0], data["nodes"][0]["nics"][0]):
        link["rate"]["evidence"] = evidence
    return topology_from_dict(data)


def small_model(experts: int = 4, top_k: int = 1, layers: int = 1, **changes: Any) -> ModelSpec:
    """Every layer holds experts. 992 elements and 16 bytes are a message of 2000 bytes."""
    model = ModelSpec(
        name="small",
        architecture="test",
        layers=layers,
        moe_layer_ids=tuple(range(layers)),
        experts=experts,
        top_k=top_k,
        hidden=992,
        expert_intermediate=500,
        dispatch_width=992,
        weight_dtype="bf16",
        source="made up for tests",
    )
    return replace(model, **changes)


def question(
    counts: Sequence[int] | Ints = COUNTS,
    topology: Topology | None = None,
    slots_per_gpu: int = 2,
    rule: str = "even",
    traced_TK: Sequence[Sequence[int]] | None = None,
    top_k: int = 1,
    **workload: Any,
) -> Problem:
    """A problem of one layer with these counts, or with the counts of the traced tokens."""
    counts_E = np.array(counts, dtype=np.int64)
    trace = None
    if traced_TK is not None:
        trace = Trace(np.array([traced_TK], dtype=np.int32), (len(traced_TK),))
        counts_E = np.bincount(np.ravel(traced_TK), minlength=len(counts_E))
    model = small_model(len(counts_E), top_k)
    load = LoadProfile(counts_E.astype(np.int64)[None, None], (0,), "made up for tests", trace=trace)
    step = Workload(**{"tokens_per_rank": 600, **workload})
    return Problem(topology or two_nodes(), model, load, step, slots_per_gpu, rule)


def placed(row: Sequence[int] | Ints, problem: Problem) -> Placement:
    return Placement(np.array([row]), problem.model.placed_layer_ids, problem.gpus)


def every_row(experts: int, gpus: int, slots_per_gpu: int) -> Ints:
    """rows_NGS: every valid placement of one layer, the order within a GPU apart."""
    held = combinations(range(experts), slots_per_gpu)
    rows = [row for row in product(held, repeat=gpus) if len(set().union(*row)) == experts]
    return np.array(rows, dtype=np.int64)


def random_row(draw: np.random.Generator, experts: int, gpus: int, slots_per_gpu: int) -> Ints:
    """row_P: a valid placement without any order. Needs experts <= slots and slots_per_gpu <= experts."""
    held: list[list[int]] = [[] for _ in range(gpus)]
    for expert in draw.permutation(experts).tolist():
        emptiest = min(draw.permutation(gpus).tolist(), key=lambda gpu: len(held[gpu]))
        held[emptiest].append(expert)
    for slots in held:
        others = [expert for expert in draw.permutation(experts).tolist() if expert not in slots]
        slots.extend(others[: slots_per_gpu - len(slots)])
    return np.concatenate([draw.permutation(slots) for slots in held])
