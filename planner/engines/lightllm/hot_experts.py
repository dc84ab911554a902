"""The experts that LightLLM copies to every rank, and the placement that it makes of them.

Shapes: G GPUs, S slots of one, E experts, P slots.
"""

import numpy as np
import numpy.typing as npt

from planner.base import dump_json
from planner.placement import Placement
from planner.problem import Problem


def served(placement: Placement, problem: Problem) -> Placement:
    """What LightLLM makes of what is emitted: a listed expert is on its own rank twice, and once is unused.

    Draft layers are as the plan has them.
    """
    listed = listed_experts(problem)
    own_GS = np.arange(problem.model.experts).reshape(problem.gpus, -1)
    rows = []
    for row, layer in enumerate(placement.layer_ids):
        copies_GS = np.tile(np.array(listed[layer], dtype=np.int64), (problem.gpus, 1))
        made_P = np.concatenate([own_GS, copies_GS], axis=1).ravel()
        rows.append(placement.expert_LP[row] if layer in problem.model.draft_layer_ids else made_P)
    return Placement(np.array(rows), placement.layer_ids, placement.gpus)


def listed_experts(problem: Problem) -> dict[int, list[int]]:
    """For each placed layer as many experts as a rank has slots for, that leave the busiest rank least."""
    count, layers = problem.redundant // problem.gpus, problem.model.placed_layer_ids
    shares = zip(layers, problem.load.shares_LE, strict=True)
    return {layer: _hottest(load_E, problem.gpus, count) for layer, load_E in shares}


def _hottest(load_E: npt.NDArray[np.float64], gpus: int, count: int) -> list[int]:
    """One by one the hottest expert of the rank that has most to do without those found before."""
    left_GS = load_E.reshape(gpus, -1).copy()
    found: list[int] = []
    for _ in range(count):
        rank = int(left_GS.sum(axis=1).argmax())
        open_S = [place for place in range(left_GS.shape[1]) if rank * left_GS.shape[1] + place not in found]
        if not open_S:
            rest = [expert for expert in range(len(load_E)) if expert not in found]
            found.append(rest[int(load_E[rest].argmax())])
            continue
        place = open_S[int(left_GS[rank, open_S].argmax())]
        found.append(rank * left_GS.shape[1] + place)
        left_GS[rank, place] = 0.0
    return sorted(found)


def list_text(problem: Problem) -> str:
    """The list of each MoE layer. A layer without one takes `default`, which must be as long: with a shorter
    one its router would take other slots than its loader filled.
    """
    listed, model = listed_experts(problem), problem.model
    default = listed[(*model.draft_layer_ids, *model.moe_layer_ids)[0]]
    rows = {str(layer): listed[layer] for layer in model.moe_layer_ids}
    return dump_json({"redundancy_expert_num": len(default), **rows, "default": default})
