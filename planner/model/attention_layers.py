"""The attention of each layer in a config.json: one rule for each way of saying it.

A rule takes the config and the number of decoder layers, and gives an Attention of one layer for each, or
None for a layer without any. Missing where the file does not say a fact.
"""

from collections.abc import Callable
from dataclasses import replace

from planner.model.attention import Attention
from planner.model.hf_config import HfConfig
from planner.model.limits import MOST_LAYERS

AttentionRule = Callable[[HfConfig, int], list[Attention | None]]

MOST_HEADS, WIDEST = 100_000, 10_000_000
WORDS = ("full_attention", "sliding_attention", "chunked_attention", "linear_attention", "attention", "mamba")
ALL_GATED = ("qwen3_next",)  # whose config does not say that its attention has an output gate


def grouped(config: HfConfig, layers: int) -> list[Attention | None]:
    """Heads that share keys and values; in layers of another word a window, a chunk or a gated DeltaNet."""
    full = full_layer(config)
    words = config.words("layer_types", layers, WORDS)
    if words is None and config.get("full_attention_interval"):
        every = config.whole("full_attention_interval", 1, MOST_LAYERS)
        words = [WORDS[3] if (layer + 1) % every else WORDS[0] for layer in range(layers)]
    window = _window(config)
    if words is None:
        return [replace(full, window=window)] * layers
    by_word: dict[str, Callable[[], Attention]] = {
        "sliding_attention": lambda: replace(full, window=config.whole("sliding_window", 1, WIDEST)),
        "chunked_attention": lambda: replace(full, window=config.whole("attention_chunk_size", 1, WIDEST)),
        "linear_attention": lambda: delta_layer(config),
    }
    found = {word: by_word.get(word, lambda: full)() for word in set(words)}
    return [found[word] for word in words]


def full_layer(config: HfConfig) -> Attention:
    """A layer of the usual kind that looks back on all tokens."""
    heads = heads_of(config, "num_attention_heads|n_heads|attn_config.n_heads")
    hidden = config.whole("hidden_size|d_model", 1, WIDEST)
    whole = hidden // heads if hidden % heads == 0 else None  # what a file that does not say it means
    dim = config.whole("head_dim|attention_head_dim", 1, WIDEST, default=whole)
    gate = bool(config.get("attn_output_gate")) or config.get("model_type") in ALL_GATED
    kv_heads = heads_of(config, "num_key_value_heads|attn_config.kv_n_heads")
    value_dim = config.whole("v_head_dim", 1, WIDEST, default=dim)
    return Attention("grouped", 1, heads, dim, value_dim, kv_heads, gate=gate)


def heads_of(config: HfConfig, keys: str) -> int:
    return config.whole(keys, 1, MOST_HEADS)


def _window(config: HfConfig) -> int:
    """Of all layers; Qwen states one that it does not use."""
    if config.get("use_sliding_window") is False or config.get("sliding_window") is None:
        return 0
    return config.whole("sliding_window", 0, WIDEST)


def delta_layer(config: HfConfig) -> Attention:
    return Attention(
        "delta",
        1,
        heads_of(config, "linear_num_value_heads"),
        config.whole("linear_key_head_dim", 1, WIDEST),
        config.whole("linear_value_head_dim", 1, WIDEST),
        heads_of(config, "linear_num_key_heads"),
        gate=True,
        conv=config.whole("linear_conv_kernel_dim", 1, WIDEST),
    )


def pattern(config: HfConfig, layers: int) -> list[Attention | None]:
    """MiMo: 1 in `hybrid_layer_pattern` is a window, with heads of its own."""
    full, flags = full_layer(config), config.wholes("hybrid_layer_pattern", MOST_LAYERS)
    if flags is None or len(flags) != layers:
        return [full] * layers
    dim = config.whole("swa_head_dim", 1, WIDEST)
    window = replace(
        full,
        heads=heads_of(config, "swa_num_attention_heads"),
        kv_heads=heads_of(config, "swa_num_key_value_heads"),
        key_dim=dim,
        value_dim=config.whole("swa_v_head_dim", 1, WIDEST, default=dim),
        window=config.whole("sliding_window|sliding_window_size", 1, WIDEST),
    )
    return [window if flag else full for flag in flags]


def global_heads(config: HfConfig, layers: int) -> list[Attention | None]:
    """Gemma: layers that look back on all tokens have heads of their own, and may take keys for values."""
    window = replace(full_layer(config), window=config.whole("sliding_window", 1, WIDEST))
    dim = config.whole("global_head_dim", 1, WIDEST)
    full = replace(
        window,
        kv_heads=heads_of(config, "num_global_key_value_heads|num_key_value_heads"),
        key_dim=dim,
        value_dim=dim,
        window=0,
        shared_values=bool(config.get("attention_k_eq_v")),
    )
    words = config.words("layer_types", layers, WORDS)
    return [full if word == "full_attention" else window for word in words or [WORDS[0]] * layers]


def chunks(config: HfConfig, layers: int) -> list[Attention | None]:
    """Llama 4: every fourth layer looks back on all tokens, the others on a chunk."""
    if config.get("layer_types") is not None:
        return grouped(config, layers)
    full = full_layer(config)
    chunk = replace(full, window=config.whole("attention_chunk_size", 1, WIDEST))
    rotated = config.wholes("no_rope_layers", MOST_LAYERS) or []
    if len(rotated) != layers:
        every = config.whole("no_rope_layer_interval", 1, MOST_LAYERS, default=4)
        rotated = [(layer + 1) % every for layer in range(layers)]
    return [chunk if flag else full for flag in rotated]


def indexed(config: HfConfig, layers: int) -> list[Attention | None]:
    """MiniMax-M3: an index of blocks in the layers that `sparse_attention_freq` flags."""
    full, flags = full_layer(config), None
    if isinstance(config.get("sparse_attention_config"), dict):
        nested = HfConfig(config.get("sparse_attention_config"), config.where)
        flags = nested.wholes("sparse_attention_freq", MOST_LAYERS)
        sparse = replace(
            full,
            index_heads=heads_of(nested, "sparse_num_index_heads"),
            index_dim=nested.whole("sparse_index_dim", 1, WIDEST),
            index_tokens=nested.whole("sparse_topk_blocks", 1, WIDEST)
            * nested.whole("sparse_block_size", 1, WIDEST),
        )
    return [sparse if flag else full for flag in flags or [0] * layers]
