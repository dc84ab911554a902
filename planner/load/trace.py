"""A recorded trace becomes windows of counts, one a sequence, without the prompt that all sequences share.

Shapes: L layers, T tokens, K = top_k, S sequences, W = S windows, E experts.
"""

import numpy as np

from planner.base import BadInput
from planner.load.profile import Counts, Ids, LoadProfile, Trace
from planner.load.recording import Recording, check_size
from planner.load.rows import resolve_layers
from planner.load.spans import spans
from planner.model import ModelSpec

SHORTEST_PREFIX = 4  # tokens; fewer agree by chance
STEPS = ("forward pass", "iteration")  # window units of engines: a step does not begin with a prompt
AGREEMENT = 0.8  # of a position's sequences with the majority, mean over layers: noise flips some near-ties


def fit_trace(recording: Recording, model: ModelSpec) -> tuple[Trace, tuple[int, ...], list[str]]:
    """(trace, ascending layer ids, notes) of a recording; a prompt that opens every sequence is dropped."""
    path, layer_ids = recording.path, resolve_layers(recording, model)
    stray = sorted(set(layer_ids) - set(model.placed_layer_ids))
    if stray:
        raise BadInput(
            f"{path}: the trace has ids for layer {stray[0]}, "
            f"but {model.name} has experts in layers {spans(model.placed_layer_ids)}"
        )
    _check_ids(recording, layer_ids, model)
    tokens = recording.values.shape[1]
    notes = []
    if not recording.sequence_lengths:
        notes.append(f"{path}: no sequence lengths; its {tokens} tokens are one window")
    lengths = recording.sequence_lengths or (tokens,)
    if sum(lengths) != tokens or min(lengths) < 1:
        total = f"(from {min(lengths)}) sum to {sum(lengths)}"
        raise BadInput(f"{path}: sequence lengths {total}, but the trace holds {tokens} tokens")
    trace = Trace(recording.values[np.argsort(layer_ids)].astype(np.int32), lengths)
    if recording.window_unit not in STEPS:
        trace, note = without_prompt(trace)
        notes += [f"{path}: {note}"] if note else []
    return trace, tuple(sorted(layer_ids)), notes


def without_prompt(trace: Trace) -> tuple[Trace, str | None]:
    """The trace without the tokens that open every sequence alike, and a note on them."""
    lengths = trace.sequence_lengths
    prefix = common_prefix(trace.experts_LTK, lengths)
    if not prefix:
        return trace, None
    if prefix == min(lengths):
        return trace, (
            f"all sequences agree to the end of the shortest ({prefix} tokens), "
            "so no common prompt can be told; nothing dropped"
        )
    starts_S = np.cumsum(lengths) - lengths
    position_T = np.arange(sum(lengths)) - np.repeat(starts_S, lengths)
    kept_LTK = trace.experts_LTK[:, position_T >= prefix]
    alike = f"the first {prefix} tokens of all {len(lengths)} sequences are routed alike"
    return Trace(
        kept_LTK, tuple(length - prefix for length in lengths)
    ), f"{alike} (a common prompt); dropped"


def _check_ids(recording: Recording, layer_ids: tuple[int, ...], model: ModelSpec) -> None:
    """BadInput where ids are not whole, not top_k a token, not the model's experts, or not distinct."""
    path, ids_LTK = recording.path, recording.values
    if ids_LTK.dtype.kind not in "iu":
        raise BadInput(f"{path}: a trace holds whole expert ids; its array is of type {ids_LTK.dtype}")
    if ids_LTK.shape[2] != model.top_k:
        given = f"{ids_LTK.shape[2]} expert ids a token"
        raise BadInput(f"{path}: {given}, but {model.name} chooses {model.top_k}")
    outside = (ids_LTK < 0) | (ids_LTK >= model.experts)
    if outside.any():
        layer, token, k = (int(index) for index in np.argwhere(outside)[0])
        raise BadInput(
            f"{path}: layer {layer_ids[layer]}, token {token} has the expert id {ids_LTK[layer, token, k]}; "
            f"{model.name} has the experts 0..{model.experts - 1}"
        )
    sorted_LTK = np.sort(ids_LTK, axis=2)
    twice = sorted_LTK[:, :, 1:] == sorted_LTK[:, :, :-1]
    if twice.any():
        layer, token, k = (int(index) for index in np.argwhere(twice)[0])
        chosen = f"layer {layer_ids[layer]}, token {token} chooses expert {sorted_LTK[layer, token, k]} twice"
        raise BadInput(f"{path}: {chosen}; the ids of a token are distinct")


def common_prefix(experts_LTK: Ids, lengths: tuple[int, ...]) -> int:
    """How many opening tokens all sequences share, 0 where fewer than SHORTEST_PREFIX.

    A position is shared when, besides the majority's first, at least AGREEMENT of the sequences choose the
    majority's experts (in any order), on average over layers: the router is not bit-exact between batches,
    so the same prompt does not always give the same ids.
    """
    starts_S = np.cumsum(lengths) - lengths
    if len(lengths) < 2:
        return 0
    prefix = 0
    while prefix < min(lengths) and _agreement(experts_LTK[:, starts_S + prefix]) >= AGREEMENT:
        prefix += 1
    return prefix if prefix >= SHORTEST_PREFIX else 0


def _agreement(experts_LSK: Ids) -> float:
    """Share of the other sequences that choose as the majority does, mean over layers: 1 where all agree."""
    largest_L = [
        np.unique(chosen_SK, axis=0, return_counts=True)[1].max()
        for chosen_SK in np.sort(experts_LSK, axis=2)
    ]
    return float((np.mean(largest_L) - 1) / (experts_LSK.shape[1] - 1))


def count_trace(trace: Trace, experts: int, source: str) -> Counts:
    """Assignments of each sequence, layer and expert."""
    layers, sequences = len(trace.experts_LTK), len(trace.sequence_lengths)
    check_size(source, sequences, layers, experts)
    first_T1 = (np.repeat(np.arange(sequences), trace.sequence_lengths) * experts)[:, None]
    counts_LW = [
        np.bincount((first_T1 + ids_TK).ravel(), minlength=sequences * experts)
        for ids_TK in trace.experts_LTK
    ]
    return np.ascontiguousarray(
        np.array(counts_LW, dtype=np.int64).reshape(layers, sequences, experts).transpose(1, 0, 2)
    )


def load_of_rows(experts_LTK: Ids, load: LoadProfile, source: str) -> LoadProfile:
    """Rows of a trace, on the layers of `load`, as one window; a layer that has -1 keeps the counts of
    `load`.
    """
    trace = Trace(experts_LTK, (experts_LTK.shape[1],))
    recorded_L, tokens_LE = trace.recorded_L, load.total_LE.copy()
    recorded = Trace(experts_LTK[recorded_L], trace.sequence_lengths)
    tokens_LE[recorded_L] = count_trace(recorded, load.experts, source)[0]
    unmeasured = set(load.unmeasured_layer_ids) - {
        layer for layer, known in zip(load.layer_ids, recorded_L, strict=True) if known
    }
    return LoadProfile(
        tokens_LE[None], load.layer_ids, source, trace=trace, unmeasured_layer_ids=tuple(sorted(unmeasured))
    )
