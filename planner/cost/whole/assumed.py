"""The body of a model whose configuration says nothing of it: a rule of thumb, and called assumed."""

from planner.model import Attention, Body, ModelSpec

HEAD_WIDTH, KV_HEADS = 128, 8  # of most models of 2024 to 2026
DENSE_WIDTHS = 3  # a dense layer is this many times as wide as the model
VOCABULARY = 150_000


def assumed_body(model: ModelSpec) -> Body:
    """Grouped attention with heads of 128 elements, 8 of keys; dense layers three times the hidden width."""
    dtype = "fp8" if model.weight_dtype == "fp8" else "bf16"
    attention = Attention(
        "grouped", model.layers, max(model.hidden // HEAD_WIDTH, 1), HEAD_WIDTH, HEAD_WIDTH, kv_heads=KV_HEADS
    )
    return Body(
        attention=(attention,),
        vocabulary=VOCABULARY,
        dense_layers=model.layers - len(model.moe_layer_ids),
        dense_width=DENSE_WIDTHS * model.hidden,
        shared_width=model.shared_experts * model.expert_intermediate,
        attention_dtype=dtype,
        dense_dtype=dtype,
        shared_dtype=dtype,
    )
