"""Attention over the context: what a step reads of the cache, and the operations that look at it.

Of one request and one layer, on each of the GPUs that share its attention. Projections are weights and stand
in `planner.cost.whole.terms`.
"""

from planner.model import Attention

STATE_OPERATIONS = 6  # of an element of a recurrent state: decay, outer product and read, two each


def read_bytes(layer: Attention, context: float, element_bytes: float, gpus: int) -> float:
    """Bytes that one token's step reads of a request with `context` tokens before it.

    A state is read and written back; sparse attention reads index keys of all and entries of those picked.
    """
    entry = layer.entry_bytes(element_bytes, gpus)
    index = layer.index_bytes * context / (layer.ratio or 1)
    return entry * attended_tokens(layer, context) + index + 2 * _state_bytes(layer, element_bytes, gpus)


def attended_tokens(layer: Attention, context: float) -> float:
    """Entries of the cache that a token looks at; 0 where a state stands for all that was.

    >>> from planner.model import Attention
    >>> attended_tokens(Attention("grouped", 1, 8, 128, 128, kv_heads=2, window=128), 4096.0)
    128
    """
    if layer.kind not in ("grouped", "mla", "compressed"):
        return 0.0
    if layer.kind == "compressed":
        entries = context / layer.ratio if layer.ratio else 0.0
        picked = min(entries, layer.index_tokens) if layer.index_tokens else entries
        return min(context, layer.window) + picked
    least = min(context, layer.window) if layer.window else context
    return min(least, layer.index_tokens) if layer.index_tokens else least


def scores_flops(layer: Attention, context: float, gpus: int, *, absorbed: bool) -> float:
    """Operations of one token against `context` tokens before it, on each GPU.

    `absorbed`: MLA in decode works on the latent itself, in prefill on keys and values made of it.
    """
    heads = -(-layer.heads // gpus)
    if layer.kind == "mla" and absorbed:
        width = 2 * layer.kv_rank + layer.rope_dim
    else:
        width = layer.key_dim + layer.value_dim
    looked = 2.0 * heads * width * attended_tokens(layer, context)
    index = 2.0 * layer.index_heads * layer.index_dim * context / (layer.ratio or 1)
    state = 0.0
    if layer.kind not in ("grouped", "mla", "compressed"):
        state = float(STATE_OPERATIONS * heads * layer.value_dim * (layer.state_dim or layer.key_dim))
    return looked + index + state


def _state_bytes(layer: Attention, element_bytes: float, gpus: int) -> float:
    """What a layer keeps of a request however long it is; windows are counted as entries."""
    return layer.fixed_bytes(0, element_bytes, gpus)
