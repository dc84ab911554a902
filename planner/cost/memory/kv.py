"""What a request takes of each GPU: by the model's body, or by rule of thumb where it has none."""

from planner.cost.memory.case import Case

# Keys and values of a layer over the hidden size, in bf16: eight query heads to one of keys, as is usual.
THUMB = 2 * 2.0 / 8


def kv_bytes(case: Case) -> tuple[float, float, str]:
    """(bytes of one more token, bytes of a request at full context, what they rest on) on each GPU."""
    model, workload = case.model, case.workload
    tokens, shared = workload.context_tokens, workload.attention_tp
    if model.body is None:
        token = (model.layers + len(model.draft_layer_ids)) * model.hidden * THUMB
        return token, token * tokens, "assumed: by rule of thumb, the model's attention is not known"
    kinds = dict.fromkeys(each.kind for each in model.body.layers)
    over = f" over {shared} GPUs" if shared > 1 else ""
    basis = f"exact: {', '.join(kinds)} attention{over}, KV cache in {model.body.kv_dtype}"
    return model.body.token_bytes(shared), model.body.request_bytes(tokens, shared), basis
