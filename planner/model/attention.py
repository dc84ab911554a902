"""Attention: what a layer of a kind weighs, and what it keeps of a request, by its configuration.

Laws of weights are those of the released models' own code (transformers, SGLang 0.5.23 and vLLM 0.33.0 read
alike); norms, biases and other vectors are left out, together less than 0.1 % of a model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import planner.model.attention_laws as laws
import planner.model.state_laws as states
from planner.base import BadInput

INDEX_SCALE = 128  # elements of an index key that share one float32 scale


@dataclass(frozen=True)
class Attention:
    """Layers of one kind; what a kind has no use for is 0.

    `kind`: grouped (GQA, MHA), mla, compressed (DeepSeek-V4), or one that keeps a fixed state a request:
    delta (gated DeltaNet), kda, lightning, mamba, mamba2.
    """

    kind: str
    layers: int
    heads: int  # of queries; of states
    key_dim: int  # of one head's queries and keys
    value_dim: int  # of one head's values
    kv_heads: int = 0  # grouped: heads of keys and values; delta: heads of keys
    window: int = 0  # tokens that a layer looks back on; 0: all
    gate: bool = False  # the output is gated by a projection of its own (kda: of full rank)
    shared_values: bool = False  # grouped: values are the keys, without a projection of their own
    query_rank: int = 0  # mla, compressed; mamba: rank of the step's projection
    kv_rank: int = 0  # mla
    rope_dim: int = 0  # mla, compressed: of key_dim, the part that is rotated
    output_rank: int = 0  # compressed: of each group
    groups: int = 0  # compressed: of the output; mamba2: of inputs and outputs of the state
    ratio: int = 0  # compressed: tokens to one entry of the cache; 0: the window alone
    index_heads: int = 0  # sparse attention: heads of the index that picks tokens
    index_dim: int = 0
    index_tokens: int = 0  # tokens picked
    state_dim: int = 0  # mamba, mamba2: states of a channel
    conv: int = 0  # tokens that a state's convolution looks back on

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"attention kind {self.kind!r} is unknown; known are {', '.join(KINDS)}")
        for name in ("layers", "heads", "key_dim", "value_dim"):
            if getattr(self, name) < 1:
                value = getattr(self, name)
                raise BadInput(f"{self.kind} attention: {name} is {value}; it must be at least 1")

    def weights(self, hidden: int, gpus: int = 1) -> int:
        """Weights of one layer on each of `gpus` GPUs that share a request's attention."""
        return KINDS[self.kind].weights(self, hidden, gpus)

    def entry_bytes(self, element_bytes: float, gpus: int = 1) -> float:
        """Bytes that one layer keeps of one token of a request on each GPU, index keys apart."""
        return KINDS[self.kind].entry_bytes(self, element_bytes, gpus)

    @property
    def index_bytes(self) -> float:
        """Bytes of one token's index key, as SGLang 0.5.23 keeps it: fp8 with scales, or bf16 beside GQA."""
        if self.kind == "grouped":
            return 2.0 * self.index_dim
        return self.index_dim + self.index_dim // INDEX_SCALE * 4

    def token_bytes(self, element_bytes: float, gpus: int = 1) -> float:
        """Bytes that one layer keeps of one more token, however many it has; 0 inside a window or a state."""
        if self.kind == "compressed":
            entry = self.entry_bytes(element_bytes, gpus) + self.index_bytes
            return entry / self.ratio if self.ratio else 0.0
        if self.window:
            return 0.0
        return self.entry_bytes(element_bytes, gpus) + self.index_bytes

    def fixed_bytes(self, tokens: int, element_bytes: float, gpus: int = 1) -> float:
        """Bytes that one layer keeps of a request of `tokens` beside those: its window and its state."""
        window = min(tokens, self.window) * self.entry_bytes(element_bytes, gpus)
        return window + KINDS[self.kind].state_bytes(self, gpus)


def _nothing(*_arguments: object) -> float:
    return 0.0


@dataclass(frozen=True)
class Kind:
    """The laws of one kind of attention; the last argument of each is the number of GPUs that share it."""

    weights: Callable[[Attention, int, int], int]
    entry_bytes: Callable[[Attention, float, int], float]
    state_bytes: Callable[[Attention, int], float] = _nothing


KINDS = {
    "grouped": Kind(laws.grouped_weights, laws.grouped_entry_bytes),
    "mla": Kind(laws.mla_weights, laws.mla_entry_bytes),
    "compressed": Kind(laws.compressed_weights, laws.compressed_entry_bytes, laws.compressed_state_bytes),
    "delta": Kind(states.delta_weights, _nothing, states.delta_state_bytes),
    "kda": Kind(states.kda_weights, _nothing, states.kda_state_bytes),
    "lightning": Kind(states.lightning_weights, _nothing, states.lightning_state_bytes),
    "mamba": Kind(states.mamba_weights, _nothing, states.mamba_state_bytes),
    "mamba2": Kind(states.mamba2_weights, _nothing, states.mamba2_state_bytes),
}
