"""Laws of layers that keep a state of fixed size of each request: weights of a layer, and bytes it keeps.

Each takes the number of GPUs that share a request's attention, and says what one of them has. Weights are
counted in elements, whatever their dtype; `hidden` is the width of the model.
"""

from typing import TYPE_CHECKING

from planner.model.attention_laws import STATE_BYTES, share

if TYPE_CHECKING:
    from planner.model.attention import Attention

CONV_BYTES = 2  # of an input that a state's convolution looks back on, bf16


def delta_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Gated DeltaNet: keys and queries of `kv_heads`, the rest of `heads`; two gates a head."""
    heads, kv_heads = share(layer.heads, gpus), share(layer.kv_heads, gpus)
    values, mixed = heads * layer.value_dim, 2 * kv_heads * layer.key_dim + heads * layer.value_dim
    return hidden * (mixed + 2 * values + 2 * heads) + mixed * layer.conv


def delta_state_bytes(layer: "Attention", gpus: int) -> float:
    """Of a request, of any length: a matrix a head, and what the convolution looks back on."""
    heads, kv_heads = share(layer.heads, gpus), share(layer.kv_heads, gpus)
    mixed = 2 * kv_heads * layer.key_dim + heads * layer.value_dim
    return heads * layer.key_dim * layer.value_dim * STATE_BYTES + mixed * (layer.conv - 1) * CONV_BYTES


def kda_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Kimi's delta attention: a gate for each channel, of full or of low rank."""
    heads = share(layer.heads, gpus)
    width = heads * layer.key_dim
    gates = 2 * hidden * width if layer.gate else 2 * layer.key_dim * (hidden + width)
    return hidden * (4 * width + heads) + gates + 3 * width * layer.conv


def kda_state_bytes(layer: "Attention", gpus: int) -> float:
    """Of a request, of any length: a matrix a head, and the inputs of three convolutions."""
    heads = share(layer.heads, gpus)
    conv = 3 * heads * layer.key_dim * (layer.conv - 1) * CONV_BYTES
    return heads * layer.key_dim * layer.value_dim * STATE_BYTES + conv


def lightning_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Queries, keys, values, the gate and the output, each of the full width."""
    return 5 * hidden * share(layer.heads, gpus) * layer.key_dim


def lightning_state_bytes(layer: "Attention", gpus: int) -> float:
    """Of a request, of any length: a matrix a head."""
    return share(layer.heads, gpus) * layer.key_dim * layer.value_dim * STATE_BYTES


def mamba_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Mamba 1, of `heads` channels."""
    inner = share(layer.heads, gpus)
    small = inner * (layer.query_rank + 2 * layer.state_dim) + layer.query_rank * inner
    return hidden * 3 * inner + small + inner * layer.conv


def mamba_state_bytes(layer: "Attention", gpus: int) -> float:
    """Of a request, of any length: a state a channel, and the inputs of the convolution."""
    inner = share(layer.heads, gpus)
    return inner * layer.state_dim * STATE_BYTES + inner * (layer.conv - 1) * CONV_BYTES


def mamba2_weights(layer: "Attention", hidden: int, gpus: int) -> int:
    """Mamba 2: heads of `value_dim` channels; `groups` share the projections to the state."""
    heads, mixed = share(layer.heads, gpus), _mamba2_mixed(layer, gpus)
    inner = heads * layer.value_dim
    return hidden * (inner + mixed + heads) + mixed * layer.conv + inner * hidden


def _mamba2_mixed(layer: "Attention", gpus: int) -> int:
    return share(layer.heads, gpus) * layer.value_dim + 2 * share(layer.groups, gpus) * layer.state_dim


def mamba2_state_bytes(layer: "Attention", gpus: int) -> float:
    """Of a request, of any length: a matrix a head, and the inputs of the convolution."""
    heads, conv = share(layer.heads, gpus), _mamba2_mixed(layer, gpus) * (layer.conv - 1)
    return heads * layer.value_dim * layer.state_dim * STATE_BYTES + conv * CONV_BYTES
