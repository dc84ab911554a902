"""`nearest-static`: SGLang's `static` dispatch table, with its own random stream.

Source: SGLang 0.5.23, srt/eplb/expert_location.py. Equal to the engine's own table in
tests/engines/test_sglang_parity.py.
"""

import random
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from planner.model import ModelSpec
from planner.placement import Placement
from planner.replica.near import nearest, nearest_slots
from planner.replica.situation import Ids, Shares, Situation

LARGEST_EXACT_TABLE = 4_000_000  # draws; the engine's own loop is as long, and past this it takes minutes


def nearest_static(placement: Placement, situation: Situation) -> Iterator[Shares]:
    """One slot for each (rank, layer, expert), from a mapping file.

    Very large tables fall back to `nearest`, its expectation.
    """
    if table_draws(placement, situation.model) > LARGEST_EXACT_TABLE:
        yield from nearest(placement, situation)
        return
    slot_GLE = _kept_table(placement, situation.model, tuple(situation.node_G.tolist()))
    slot_P = np.arange(placement.slots)
    for layer, expert_P in enumerate(placement.expert_LP):
        yield (slot_GLE[:, layer][:, expert_P] == slot_P).astype(np.float64)


def static_table(placement: Placement, model: ModelSpec, node_G: Ids) -> Ids:
    """slot_GLE: the slot that each rank of SGLang 0.5.23 sends each expert to, for the placement's layers.

    The engine walks all decoder layers, dense ones included (their rows are the trivial map), and draws from
    one `Random(42)` per rank; a rank draws only for experts it has no near replica of, so the streams of two
    ranks differ. Draft layers are not in its map: their logical ids are taken for slots, which in the
    engine's own row is the first slot of each expert.
    """
    gpus, experts = placement.gpus, model.experts
    rows = dict(zip(placement.layer_ids, placement.expert_LP, strict=True))
    trivial_P = np.arange(placement.slots) % experts
    slot_GLE = np.empty((gpus, len(placement.layer_ids), experts), dtype=np.int64)
    streams = [random.Random(42) for _ in range(gpus)]  # noqa: S311 - the engine's stream, not a secret
    for layer_id in range(model.layers):
        expert_P = rows.get(layer_id, trivial_P)
        table_GE = nearest_slots(expert_P, experts, placement.slots_per_gpu, node_G)
        _draw_far_slots(table_GE, expert_P, streams)
        if layer_id in rows:
            slot_GLE[:, placement.layer_ids.index(layer_id)] = table_GE
    for row, layer_id in enumerate(placement.layer_ids):
        if layer_id >= model.layers:
            slot_GLE[:, row] = np.unique(placement.expert_LP[row], return_index=True)[1]
    return slot_GLE


@lru_cache(maxsize=8)
def _kept_table(placement: Placement, model: ModelSpec, node_G: tuple[int, ...]) -> Ids:
    """One placement is judged on several loads, and its table does not depend on them."""
    return static_table(placement, model, np.array(node_G))


def table_draws(placement: Placement, model: ModelSpec) -> int:
    """An upper bound on the random numbers that `static_table` draws."""
    mapped_L = np.array(placement.layer_ids) < model.layers
    replicated = int((placement.replicas_LE(model.experts)[mapped_L] > 1).sum())
    trivial = (model.layers - int(mapped_L.sum())) * min(placement.slots - model.experts, model.experts)
    return (replicated + trivial) * placement.gpus**2


def _draw_far_slots(table_GE: Ids, expert_P: Ids, streams: list[random.Random]) -> None:
    """For the ranks without a near replica, expert by expert."""
    for expert in np.flatnonzero((table_GE < 0).any(axis=0)):
        candidates = np.flatnonzero(expert_P == expert).tolist()
        drawing = np.flatnonzero(table_GE[:, expert] < 0)
        for position, rank in enumerate(drawing):
            table_GE[rank, expert] = _fair_choices(candidates, len(drawing), streams[rank])[position]


def _fair_choices(candidates: list[int], count: int, stream: random.Random) -> list[int]:
    """`count` picks, each candidate as often as the others (the rest drawn), in drawn order.

    Consumes the stream exactly as the engine does.
    """
    times, rest = divmod(count, len(candidates))
    picks = candidates * times + stream.sample(candidates, k=rest)
    stream.shuffle(picks)
    return picks
