"""SGLang 0.5.23: the ids of per_token dumps as a trace of experts.

Shapes: L layers, P slots, T tokens, K = top_k.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.base import BadInput
from planner.load.dense import check_dense
from planner.load.dumps.sglang_records import Record
from planner.load.dumps.slots import SlotMap
from planner.load.recording import Array
from planner.model import ModelSpec


@dataclass(frozen=True, eq=False)
class PassTrace:
    """The tokens of the forward passes that have any, in order of pass and rank."""

    experts_LTK: Array
    lengths: dict[int, int]  # tokens by pass
    dropped: int  # padded rows left out


def read_trace(
    records: Sequence[Record], found_map: SlotMap, model: ModelSpec, path: str
) -> PassTrace | None:
    """The ids in the MoE layers; None where a record holds no ids, or no token is left."""
    tables = [
        (record, record.slots_LTK)
        for record in sorted(records, key=lambda record: (record.pass_id, record.rank))
        if record.slots_LTK is not None
    ]
    if len(tables) < len(records):
        return None
    lengths = {record.pass_id: 0 for record, _ in tables}
    parts, dropped = [], 0
    for record, slots_LTK in tables:
        routed_LTK = _routed_LTK(record, slots_LTK, found_map, model)
        tokens = routed_LTK.shape[1]
        dropped += slots_LTK.shape[1] - tokens
        lengths[record.pass_id] += tokens
        absent = [layer for layer in model.moe_layer_ids if layer not in found_map.rows]
        if absent:
            raise BadInput(f"{path}: layer {absent[0]} has no row in the dump's map")
        parts.append(found_map.experts_LTK(model.moe_layer_ids, routed_LTK))
    joined_LTK = np.concatenate(parts, axis=1)
    filled = {pass_id: length for pass_id, length in lengths.items() if length}
    return PassTrace(joined_LTK, filled, dropped) if filled else None


def _routed_LTK(record: Record, slots_LTK: Array, found_map: SlotMap, model: ModelSpec) -> Array:
    """The slots of the MoE layers without padded tokens.

    The engine's table is 8 wide whatever top_k is; columns past top_k must be empty.
    """
    where = f"{record.path}: pass {record.pass_id}"
    if len(slots_LTK) != model.layers:
        raise BadInput(
            f"{record.path}: {len(slots_LTK)} layers, but {model.name} has {model.layers} decoder layers, "
            "each of which SGLang gives a row"
        )
    if slots_LTK.shape[2] < model.top_k or (slots_LTK[:, :, model.top_k :] >= 0).any():
        raise BadInput(
            f"{where}: tokens do not have {model.top_k} ids as {model.name} does "
            "(shared experts fused, or another)"
        )
    check_dense(slots_LTK[:, :, : model.top_k].transpose(1, 0, 2), model, where)
    routed_LTK = slots_LTK[list(model.moe_layer_ids), :, : model.top_k]
    routed_LTK = routed_LTK[:, (routed_LTK >= 0).all(axis=(0, 2))]
    if (routed_LTK >= found_map.slots).any():
        raise BadInput(
            f"{where}: slot {routed_LTK.max()} of {found_map.slots}; "
            "fused shared experts are not slots of the map"
        )
    return routed_LTK
