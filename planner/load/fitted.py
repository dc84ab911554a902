"""One file's recording on the model's own layers, by expert: its counts, and the trace it holds or implies.

Shapes: W windows, L layers, E experts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.base import BadInput
from planner.load.cooccurrence import check_pairs, drawn_trace
from planner.load.dumps.slots import SlotMap, logical_counts, logical_trace
from planner.load.profile import Counts, Trace
from planner.load.recording import Array, Recording
from planner.load.rows import fit_counts, resolve_layers
from planner.load.trace import count_trace, fit_trace
from planner.model import ModelSpec, recorded_on_another


@dataclass(frozen=True, eq=False)
class Fitted:
    """One file's windows on the model's own layers."""

    recording: Recording
    tokens_WLE: Counts
    layer_ids: tuple[int, ...]
    trace: Trace | None
    notes: list[str]

    @property
    def path(self) -> str:
        return self.recording.path

    @property
    def window_names(self) -> tuple[str, ...]:
        return self.recording.window_names or tuple(map(str, range(len(self.tokens_WLE))))

    @property
    def window_unit(self) -> str:
        return self.recording.window_unit or ("sequence" if self.recording.is_trace else "window")


def fit(recording: Recording, model: ModelSpec) -> Fitted:
    """BadInput where layers, experts, counts or ids are not the model's, or another model is named."""
    if recording.model and recorded_on_another(recording.model, model):
        raise BadInput(
            f"{recording.path} was recorded on {recording.model}, whose experts are not those of "
            f"{model.name}; give --model {recording.model}, or a load of {model.name}"
        )
    if recording.is_trace:
        recorded, layer_ids, notes = fit_trace(recording, model)
        tokens_WLE = count_trace(recorded, model.experts, recording.path)
        return Fitted(recording, tokens_WLE, layer_ids, recorded, [*recording.notes, *notes])
    tokens_WLE, layer_ids, notes = fit_counts(recording, model)
    trace = None
    if recording.together_LEE is not None and model.top_k > 1:
        trace, note = _drawn(recording, recording.together_LEE, tokens_WLE, layer_ids, model)
        notes = [*notes, note]
    return Fitted(recording, tokens_WLE, layer_ids, trace, [*recording.notes, *notes])


def _drawn(
    recording: Recording,
    together_LEE: Array,
    tokens_WLE: Counts,
    layer_ids: tuple[int, ...],
    model: ModelSpec,
) -> tuple[Trace | None, str]:
    """Tokens with the pairs of the co-occurrence counts, whose rows are in the order of the file's."""
    path, given = recording.path, resolve_layers(recording, model)
    pairs_LEE = check_pairs(together_LEE, path, given, model.experts)
    pairs_LEE = pairs_LEE[[given.index(layer) for layer in layer_ids]]
    heard_L = pairs_LEE.any(axis=(1, 2))
    if not heard_L.all():
        silent = layer_ids[int((~heard_L).argmax())]
        together = f"no experts were chosen together in layer {silent}"
        return None, f"{path}: {together}; the co-occurrence counts are not used"
    note = (
        f"{path}: tokens are drawn from its co-occurrence counts: "
        "pairs as recorded, larger groups as these imply, alike in all windows"
    )
    return drawn_trace(pairs_LEE, tokens_WLE, layer_ids, model.top_k), note


def by_expert(recordings: Sequence[Recording], slots: SlotMap, model: ModelSpec) -> list[Recording]:
    """Counts and ids of slots made those of experts; BadInput where no file needs a map."""
    if all(recording.logical for recording in recordings):
        first = recordings[0].path
        raise BadInput(f"{slots.source}: no map is needed, since {first} is by expert already; leave it out")
    return [recording if recording.logical else _logical(recording, slots, model) for recording in recordings]


def _logical(recording: Recording, slots: SlotMap, model: ModelSpec) -> Recording:
    layer_ids = resolve_layers(recording, model)
    if recording.is_trace:
        return logical_trace(recording, layer_ids, slots)
    values = logical_counts(recording.values, layer_ids, recording.path, slots, model.experts)
    notes = recording.notes
    if recording.together_LEE is not None:
        notes = (*notes, f"{recording.path}: its co-occurrence counts are of slots, so they are not used")
    return replace(recording, values=values, logical=True, together_LEE=None, notes=notes)
