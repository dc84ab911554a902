"""Questions so small that all of their placements can be priced, with and without a trace."""

import numpy as np
import numpy.typing as npt

from planner.cost import Cost, cost
from planner.load import LoadProfile, Trace
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.topology import Topology
from tests.planner.machines import pcie_box, two_by_two, two_chips
from tests.planner.small import every_row, small_model, two_nodes

Ints = npt.NDArray[np.int64]

MACHINES: dict[str, Topology] = {
    "two-nodes": two_nodes(),
    "leaf-spine": two_by_two("leaf-spine", oversubscription=2.0),
    "pcie-box": pcie_box(),
    "two-chips": two_chips(),
}


def tiny_problem(
    machine: str = "two-nodes",
    experts: int = 4,
    slots_per_gpu: int = 1,
    top_k: int = 1,
    rule: str = "even",
    transport: str = "slot",
    tokens: int = 600,
    traced_tokens: int = 0,
    seed: int = 0,
) -> Problem:
    """One layer with a lognormal load, or with the counts of so many traced tokens."""
    draw = np.random.default_rng(seed)
    popularity_E = draw.lognormal(0.0, 1.2, experts)
    trace = None
    counts_E = np.rint(popularity_E * 100).astype(np.int64)
    if traced_tokens:
        keys_TE = np.log(popularity_E) + draw.gumbel(size=(traced_tokens, experts))
        experts_TK = np.argsort(-keys_TE, axis=1)[:, :top_k].astype(np.int32)
        trace = Trace(experts_TK[None], (traced_tokens,))
        counts_E = np.bincount(experts_TK.ravel(), minlength=experts)
    load = LoadProfile(counts_E.astype(np.int64)[None, None], (0,), "made up for tests", trace=trace)
    step = Workload(tokens, transport=transport)
    return Problem(MACHINES[machine], small_model(experts, top_k), load, step, slots_per_gpu, rule)


def price_all(problem: Problem, rows_NP: Ints | None = None) -> Cost:
    """Every valid placement of a one-layer problem (or these), as the layers of one Cost."""
    if rows_NP is None:
        rows_NGS = every_row(problem.model.experts, problem.gpus, problem.slots_per_gpu)
        rows_NP = rows_NGS.reshape(-1, problem.slots)
    count = len(rows_NP)
    load, trace = problem.load, problem.load.trace
    repeated = Trace(np.repeat(trace.experts_LTK, count, axis=0), trace.sequence_lengths) if trace else None
    whole = LoadProfile(
        np.repeat(load.tokens_WLE, count, axis=1), tuple(range(count)), load.source, trace=repeated
    )
    model = small_model(problem.model.experts, problem.model.top_k, count)
    as_layers = Problem(
        problem.topology, model, whole, problem.workload, problem.slots_per_gpu, problem.replica_rule
    )
    return cost(as_layers, Placement(rows_NP, model.placed_layer_ids, problem.gpus))


def mean_seconds_L(
    problem: Problem, windows: list[LoadProfile], placement: Placement
) -> npt.NDArray[np.float64]:
    """The mean over windows of each layer's seconds."""
    return np.asarray(np.mean([cost(problem, placement, load).layer_seconds_L for load in windows], axis=0))
