"""A Recording's rows become a model's layers: ids resolved, every count checked, dense rows dropped.

Shapes: W windows, L layers, E experts.
"""

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load.counts import recorded_counts
from planner.load.profile import Counts
from planner.load.recording import Recording, check_size
from planner.load.spans import named_spans, spans
from planner.model import ModelSpec


def resolve_layers(recording: Recording, model: ModelSpec) -> tuple[int, ...]:
    """Absolute ids of the file's rows: those it names, else the model's MoE or all its decoder layers."""
    if recording.layer_ids is not None:
        known = set(range(model.layers)) | set(model.placed_layer_ids)
        unknown = sorted(set(recording.layer_ids) - known)
        if unknown:
            raise BadInput(
                f"{recording.path}: layer {unknown[0]} is not one of {model.name}, "
                f"whose layers are {spans(sorted(known))}; ids count decoder layers from 0"
            )
        return recording.layer_ids
    if recording.rows == len(model.moe_layer_ids):
        return model.moe_layer_ids
    if recording.rows == model.layers:
        return tuple(range(model.layers))
    raise BadInput(
        f"{recording.path}: {recording.rows} layer rows, "
        f"but {model.name} has {len(model.moe_layer_ids)} MoE layers ({model.layers} decoder layers); "
        "name the rows with 'layer_ids'"
    )


def fit_counts(recording: Recording, model: ModelSpec) -> tuple[Counts, tuple[int, ...], list[str]]:
    """(tokens_WLE, ascending ids of its MoE and draft layers, notes) of a recording of counts."""
    path, experts = recording.path, recording.values.shape[2]
    if experts != model.experts:
        raise BadInput(
            f"{path}: {experts} experts a layer, but {model.name} has {model.experts}; "
            "counts of physical slots (redundant experts included) "
            "need their physical-to-logical map: give it with --map"
        )
    layer_ids = np.array(resolve_layers(recording, model))
    check_size(path, *recording.values.shape)
    tokens_WLE = recorded_counts(recording, layer_ids)
    placed_L = np.isin(layer_ids, model.placed_layer_ids)
    dense = layer_ids[~placed_L]
    _refuse_load(path, dense[tokens_WLE[:, ~placed_L].any(axis=(0, 2))], model)
    if not placed_L.any():
        raise BadInput(
            f"{path}: no row is a MoE layer of {model.name}; those are {spans(model.moe_layer_ids)}"
        )
    notes = []
    if len(dense):
        rows = named_spans("layer", dense.tolist())
        notes.append(f"{path}: {rows} of {model.name} hold no experts; their zero rows are left out")
    kept = np.flatnonzero(placed_L)[np.argsort(layer_ids[placed_L])]
    return np.ascontiguousarray(tokens_WLE[:, kept]), tuple(layer_ids[kept].tolist()), notes


def _refuse_load(path: str, loaded: npt.NDArray[np.int64], model: ModelSpec) -> None:
    """BadInput where dense layers have assignments: ids that count MoE layers only would shift every row."""
    if len(loaded):
        raise BadInput(
            f"{path}: layer {loaded[0]} has assignments, but {model.name} has no experts there "
            f"(its MoE layers are {spans(model.moe_layer_ids)}); "
            "layer ids count every decoder layer from 0, dense ones included"
        )
