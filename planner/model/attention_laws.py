"""Laws of attention that keeps keys and values of tokens: weights of a layer, and bytes it keeps.

Each takes the number of GPUs that share a request's attention, and says what one of them has. Weights are
counted in elements, whatever their dtype; `hidden` is the width of the model.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.attention import Attention

STATE_BYTES = 4  # recurrent and compressing states are kept in float32
LATENT_PADDING = 8  # DeepSeek-V4: scales of an entry, and what aligns it


def share(heads: int, gpus: int) -> int:
    """Heads on each GPU: divided as far as they go, then one on every GPU.

    >>> share(8, 2), share(8, 16)
    (4, 1)
    """
    return -(-heads // gpus)


def grouped_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Queries and output of `heads`, keys and values of `kv_heads`; a sparse index where there is one."""
    heads, kv_heads = share(layer.heads, gpus), share(layer.kv_heads, gpus)
    queries = heads * layer.key_dim * (2 if layer.gate else 1)
    keys = kv_heads * (layer.key_dim + (0 if layer.shared_values else layer.value_dim))
    index = (layer.index_heads + 1) * layer.index_dim
    return hidden * (queries + keys + heads * layer.value_dim + index)


def grouped_entry_bytes(layer: "Attention", element_bytes: float, gpus: int) -> float:
    """Of a token: its keys and values."""
    return share(layer.kv_heads, gpus) * (layer.key_dim + layer.value_dim) * element_bytes


def mla_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Heads are shared, the projections to the low ranks and the index are whole on every GPU."""
    heads, nope = share(layer.heads, gpus), layer.key_dim - layer.rope_dim
    low = hidden * (layer.query_rank + layer.kv_rank + layer.rope_dim)
    queries = heads * layer.key_dim * (layer.query_rank or hidden)
    keys = layer.kv_rank * heads * (nope + layer.value_dim)
    output = heads * layer.value_dim * hidden * (2 if layer.gate else 1)
    return low + queries + keys + output + _index(layer, hidden)


def _index(layer: "Attention", hidden: int) -> int:
    if not layer.index_dim:
        return 0
    return layer.query_rank * layer.index_heads * layer.index_dim + hidden * (
        layer.index_dim + layer.index_heads
    )


def mla_entry_bytes(layer: "Attention", element_bytes: float, _gpus: int) -> float:
    """The latent is that of all heads: every GPU keeps it whole."""
    return (layer.kv_rank + layer.rope_dim) * element_bytes


def compressed_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """DeepSeek-V4: one latent key for all heads, an output of low rank by groups, what compresses keys."""
    heads, ranks = share(layer.heads, gpus), share(layer.groups, gpus) * layer.output_rank
    queries = hidden * layer.query_rank + layer.query_rank * heads * layer.key_dim
    output = layer.heads * layer.value_dim // layer.groups * ranks + ranks * hidden
    compressor = hidden * 2 * _overlap(layer) * layer.key_dim if layer.ratio else 0
    if not layer.index_dim:
        return queries + hidden * layer.key_dim + output + compressor
    own = hidden * 2 * _overlap(layer) * layer.index_dim  # the index compresses its keys too
    index = layer.query_rank * layer.index_heads * layer.index_dim + hidden * layer.index_heads
    return queries + hidden * layer.key_dim + output + compressor + own + index


def _overlap(layer: "Attention") -> int:
    """An entry of four tokens also looks at the four before them."""
    return 2 if layer.ratio == 4 else 1


def compressed_entry_bytes(layer: "Attention", _element_bytes: float, _gpus: int) -> float:
    """A latent of fp8, its rotated part in bf16, and scales; SGLang 0.5.23 and vLLM 0.33.0: 584 bytes."""
    nope = layer.key_dim - layer.rope_dim
    return nope + layer.rope_dim * 2 + LATENT_PADDING


def compressed_state_bytes(layer: "Attention", _gpus: int) -> float:
    """The tokens of an entry that is not complete yet, keys and gates."""
    rows = _overlap(layer) * layer.ratio
    return rows * 2 * _overlap(layer) * (layer.key_dim + layer.index_dim) * STATE_BYTES
