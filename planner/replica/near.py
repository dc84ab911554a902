"""`nearest`, `nearest-dynamic`: SGLang with an all-to-all prefers the own GPU's replica, then the own node's.

Source: SGLang 0.5.23, srt/eplb/expert_location.py and expert_location_dispatch.py.
"""

from collections.abc import Iterator

import numpy as np

from planner.placement import Placement
from planner.replica.situation import Ids, Shares, Situation, first_slots


def nearest(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """The only replica, else one on the own GPU, else the first on the own node, else a fair draw.

    This is the expectation of both SGLang rules.
    """
    experts = situation.model.experts
    for expert_P in placement.expert_LP:
        nearest_GE = nearest_slots(expert_P, experts, placement.slots_per_gpu, situation.node_G)
        even_E = 1.0 / np.maximum(np.bincount(expert_P, minlength=experts), 1)
        share_GP = np.where(nearest_GE < 0, even_E, 0.0).take(expert_P, axis=1)
        # positions in flat tables: a third of the time of pairs, with a thousand GPUs
        near_K = np.flatnonzero(nearest_GE >= 0)
        share_GP.ravel()[near_K // experts * len(expert_P) + nearest_GE.ravel()[near_K]] = 1.0
        yield share_GP


def nearest_dynamic(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """SGLang's `dynamic` dispatch: far replicas are drawn anew for each assignment, evenly.

    Draft layers have no map, and use the first slot of each expert. The engine draws 16 bits modulo n; what
    that takes from an even draw (less than n / 65,536) is left out.
    """
    shares = nearest(placement, situation)
    for layer_id, expert_P, share_GP in zip(placement.layer_ids, placement.expert_LP, shares, strict=True):
        yield share_GP if layer_id < situation.model.layers else first_slots(expert_P)


def nearest_slots(expert_P: Ids, experts: int, slots_per_gpu: int, node_G: Ids) -> Ids:
    """nearest_GE: the slot rank g uses for expert e, or -1 where it has none near and several far ones."""
    gpus, slots = len(node_G), len(expert_P)
    gpu_P = np.arange(slots) // slots_per_gpu
    replicas_E = np.bincount(expert_P, minlength=experts)
    nodes = int(node_G.max()) + 1
    first_NE = np.full((nodes, experts), slots, dtype=np.int64)
    np.minimum.at(first_NE, (node_G[gpu_P], expert_P), np.arange(slots))
    on_node_NE = np.zeros((nodes, experts), dtype=np.int64)
    np.add.at(on_node_NE, (node_G[gpu_P], expert_P), 1)
    narrows_NE = (on_node_NE > 0) & (on_node_NE < replicas_E)
    own_GE = np.full((gpus, experts), slots, dtype=np.int64)
    np.minimum.at(own_GE, (gpu_P, expert_P), np.arange(slots))
    nearest_GE = np.where(own_GE < slots, own_GE, np.where(narrows_NE, first_NE, -1)[node_G])
    single = replicas_E == 1
    only_E = np.zeros(experts, dtype=np.int64)
    only_E[expert_P] = np.arange(slots)
    nearest_GE[:, single] = only_E[single]
    return nearest_GE
