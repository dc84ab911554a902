"""Experts without expert parallelism: every GPU of a group holds a slice of every expert.

So do engines serve that are given a tensor-parallel size and no expert parallelism. A GPU computes all
assignments of the group's tokens with an expert's width divided by the GPUs: perfect balance, whatever the
load, and every touched expert is touched on every GPU. The vectors of all tokens are gathered before a layer
and the partial sums scattered after it: where the GPUs share attention too, these two are the all-reduce
that follows the layer. Constants are those of transport `allgather`.

Shapes: L placed layers, E experts, G GPUs.
"""

from dataclasses import replace

import numpy as np

from planner.base import Infeasible
from planner.cost.compute import compute_seconds_G, touched_P
from planner.cost.constants import constants_of
from planner.cost.hops import allgather
from planner.cost.phase import Phase
from planner.cost.priced import Cost
from planner.cost.routing import Floats, Routing
from planner.cost.traffic import bytes_of_messages, units
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem import Problem


def sliced_cost(problem: Problem, load: LoadProfile | None = None) -> Cost:
    """The cost of the problem's GPUs with sliced experts on `load`, the problem's own where none is given.

    Its replicas, replica rule and transport have no say. Infeasible where the width does not divide.
    """
    gathered = replace(problem.workload, transport="allgather", dispatch_dtype="bf16")
    sliced = replace(problem, model=_sliced_model(problem.model, problem.gpus), workload=gathered)
    load, gpus, constants = load or problem.load, problem.gpus, constants_of(sliced)
    over_GG, inside_GG = allgather(units(sliced), gathered.tokens_per_rank)
    (dispatch, bottleneck), (combine, _) = (
        Phase(sliced, of, size).seconds(sent_R)
        for of, size, sent_R in zip(
            (constants.dispatch, constants.combine),
            bytes_of_messages(
                gathered, sliced.model.dispatch_width, 0
            ),  # vectors alone: who holds all experts routes by itself
            problem.topology.there_and_back(over_GG + inside_GG),
            strict=True,
        )
    )
    load_G = np.full(gpus, float(gathered.tokens_per_rank * gpus * problem.model.top_k))
    compute_L = [
        float(compute_seconds_G(sliced, load_G, np.full(gpus, _touched(sliced, share_E))).max())
        for share_E in load.shares_LE
    ]
    layers = len(compute_L)
    return Cost(
        layer_ids=problem.model.placed_layer_ids,
        load_LG=np.tile(load_G, (layers, 1)),
        dispatch_seconds_L=np.full(layers, dispatch),
        compute_seconds_L=np.array(compute_L),
        combine_seconds_L=np.full(layers, combine),
        bottleneck_L=(bottleneck,) * layers,
        cross_node_L=np.full(layers, 1.0 - 1.0 / problem.topology.node_count),
        silent_L=np.asarray(load.total_LE.sum(axis=1) == 0),
    )


def _sliced_model(model: ModelSpec, gpus: int) -> ModelSpec:
    """The model as one of so many GPUs holds it: all experts, each as wide as its slice."""
    width, rest = divmod(model.expert_intermediate, gpus)
    if rest or not width:
        raise Infeasible(f"experts {model.expert_intermediate:,} wide do not divide into {gpus} equal slices")
    return replace(model, expert_intermediate=width)


def _touched(problem: Problem, share_E: Floats) -> float:
    """Expected experts that at least one token of the group reaches in a step."""
    experts = np.arange(len(share_E))
    alone = Routing(share_E, np.ones((1, len(share_E))), experts)
    return float(touched_P(problem, alone).sum())
