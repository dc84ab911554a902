"""Weights that lie on a GPU: slots exactly, the rest of the model by its body or by rule of thumb."""

from planner.cost.memory.case import Case
from planner.cost.memory.line import Line
from planner.model import body_parts

# Of a layer's attention over hidden^2: queries, keys, values, output of one width; MLA and GQA are near.
ATTENTION_SQUARES = 4
DENSE_SQUARES = 8  # of a dense layer's feed-forward
VOCABULARY = 128 * 1024  # tokens, embedded once and projected once, in bf16
OVER_ALL = "read: SGLang 0.5.23 divides it over all ranks without --enable-dp-lm-head"


def slots(case: Case) -> tuple[Line, Line]:
    """One slot for every expert, and what is beyond."""
    replicas = case.slots_per_gpu - case.fewest_slots
    return (
        Line("expert_weights", case.fewest_slots * case.slot_bytes, "exact"),
        Line("replica", replicas * case.slot_bytes, "exact"),
    )


def body(case: Case, engine: str | None) -> tuple[Line, ...]:
    """Attention, dense and shared layers, embeddings: of every GPU, divided where attention is shared."""
    shared = case.workload.attention_tp
    parts = body_parts(case.model, shared)
    if not parts:
        basis = "assumed: attention, dense layers and embeddings by rule of thumb, whole on every GPU"
        return (Line("other_weights", _by_thumb(case), basis),)
    where = "whole on every GPU" if shared == 1 else f"shared by {shared} GPUs"
    lines = []
    for name, part in parts.items():
        basis, size = f"exact: {part.weights:,} weights in {part.dtype}, {where}", part.size_bytes
        if name == "head" and engine == "sglang" and shared == 1:
            basis, size = OVER_ALL, size / case.gpus
        lines.append(Line(name, size, basis))
    return tuple(lines)


def _by_thumb(case: Case) -> float:
    model = case.model
    element = 1.0 if model.weight_dtype == "fp8" else 2.0
    attention = ATTENTION_SQUARES * (model.layers + len(model.draft_layer_ids))
    dense = DENSE_SQUARES * (model.layers - len(model.moe_layer_ids))
    shared = model.shared_experts * model.expert_bytes * len(model.placed_layer_ids)
    return (attention + dense) * model.hidden**2 * element + shared + 2 * VOCABULARY * model.hidden * 2.0
