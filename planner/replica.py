"""Replica rules: how an engine picks among the slots that hold one expert, at run time.

A rule answers with share_SP for each layer: the share of the assignments of source rank s, for the expert in slot p, that go to slot p.
Over the slots of one expert each row sums to 1. S is 1 where every source behaves alike, else G.
"""

import random
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from planner.errors import BadInput
from planner.model import ModelSpec
from planner.placement import Placement

Shares = npt.NDArray[np.float64]
Rule = Callable[[Placement, ModelSpec, npt.NDArray[np.int64]], Iterator[Shares]]

LARGEST_EXACT_TABLE = 4_000_000  # draws; the engine's own loop is as long, and past this it takes minutes


def even(placement: Placement, model: ModelSpec, node_G: npt.NDArray[np.int64]) -> Iterator[Shares]:
    """Every replica gets the same share. What balancers assume, and what vLLM's hash and TensorRT-LLM's round robin come to on many tokens."""
    del node_G
    replicas_LE = placement.replicas_LE(model.experts)
    for expert_P, replicas_E in zip(placement.expert_LP, replicas_LE, strict=True):
        yield 1.0 / replicas_E[expert_P][None, :]


def nearest(placement: Placement, model: ModelSpec, node_G: npt.NDArray[np.int64]) -> Iterator[Shares]:
    """SGLang with an all-to-all backend: the only replica, else one on the own GPU, else the first on the own node, else a fair draw.

    This is the rule's expectation; `nearest_static` is the engine's table, with its own random stream.
    """
    for expert_P in placement.expert_LP:
        nearest_GE = _nearest_slots(expert_P, model.experts, placement.slots_per_gpu, node_G)
        replicas_E = np.bincount(expert_P, minlength=model.experts)
        slot_P = np.arange(placement.slots)
        chosen_GP = nearest_GE[:, expert_P]
        yield np.where(chosen_GP == slot_P, 1.0, np.where(chosen_GP < 0, 1.0 / replicas_E[expert_P], 0.0))


def nearest_static(placement: Placement, model: ModelSpec, node_G: npt.NDArray[np.int64]) -> Iterator[Shares]:
    """SGLang's `static` dispatch from a mapping file: one slot for each (rank, layer, expert). Very large tables fall back to `nearest`, its expectation."""
    if table_draws(placement, model) > LARGEST_EXACT_TABLE:
        yield from nearest(placement, model, node_G)
        return
    slot_GLE = static_table(placement, model, node_G)
    slot_P = np.arange(placement.slots)
    for layer, expert_P in enumerate(placement.expert_LP):
        yield (slot_GLE[:, layer][:, expert_P] == slot_P).astype(np.float64)


def static_table(placement: Placement, model: ModelSpec, node_G: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """slot_GLE: the slot that each rank of SGLang 0.5.23 sends each expert to, for the placement's layers.

    The engine walks all decoder layers, dense ones included (their rows are the trivial map), and draws from one `Random(42)` per rank; a rank
    draws only for experts it has no near replica of, so the streams of two ranks differ. Draft layers are not in its map: their logical
    ids are taken for slots, which in the engine's own row is the first slot of each expert.
    """
    gpus, experts = placement.gpus, model.experts
    rows = dict(zip(placement.layer_ids, placement.expert_LP, strict=True))
    trivial_P = np.arange(placement.slots) % experts
    slot_GLE = np.empty((gpus, len(placement.layer_ids), experts), dtype=np.int64)
    streams = [random.Random(42) for _ in range(gpus)]  # noqa: S311 - the engine's stream, not a secret
    for layer_id in range(model.layers):
        expert_P = rows.get(layer_id, trivial_P)
        table_GE = _nearest_slots(expert_P, experts, placement.slots_per_gpu, node_G)
        for expert in np.flatnonzero((table_GE < 0).any(axis=0)):
            candidates = np.flatnonzero(expert_P == expert).tolist()
            drawing = np.flatnonzero(table_GE[:, expert] < 0)
            for position, rank in enumerate(drawing):
                table_GE[rank, expert] = _fair_choices(candidates, len(drawing), streams[rank])[position]
        if layer_id in rows:
            slot_GLE[:, placement.layer_ids.index(layer_id)] = table_GE
    for row, layer_id in enumerate(placement.layer_ids):
        if layer_id >= model.layers:
            slot_GLE[:, row] = np.unique(placement.expert_LP[row], return_index=True)[1]
    return slot_GLE


def table_draws(placement: Placement, model: ModelSpec) -> int:
    """An upper bound on the random numbers that `static_table` draws."""
    mapped_L = np.array(placement.layer_ids) < model.layers
    replicated = int((placement.replicas_LE(model.experts)[mapped_L] > 1).sum())
    trivial = (model.layers - int(mapped_L.sum())) * min(placement.slots - model.experts, model.experts)
    return (replicated + trivial) * placement.gpus**2


def _nearest_slots(expert_P: npt.NDArray[np.int64], experts: int, slots_per_gpu: int, node_G: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
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


def _fair_choices(candidates: list[int], count: int, stream: random.Random) -> list[int]:
    """`count` picks, each candidate as often as the others (the rest drawn), in drawn order; consumes the stream exactly as the engine does."""
    times, rest = divmod(count, len(candidates))
    picks = candidates * times + stream.sample(candidates, k=rest)
    stream.shuffle(picks)
    return picks


RULES: dict[str, Rule] = {"even": even, "nearest": nearest, "nearest-static": nearest_static}
EXPECTATION = {"nearest-static": "nearest"}  # a cheap stand-in with the same mean, for search


def find_rule(name: str) -> Rule:
    if name not in RULES:
        raise BadInput(f"replica rule {name!r} is unknown; known are {', '.join(RULES)}")
    return RULES[name]
