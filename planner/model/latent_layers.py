"""Latent attention and states of each layer in a config.json; rules like those of `attention_layers`."""

from dataclasses import replace

from planner.base import BadInput
from planner.model.attention import Attention
from planner.model.attention_layers import MOST_HEADS, WIDEST, full_layer, grouped, heads_of
from planner.model.hf_config import HfConfig
from planner.model.limits import MOST_LAYERS
from planner.model.moe_layers import blocks


def latent_or_grouped(config: HfConfig, layers: int) -> list[Attention | None]:
    """DeepSeek and its kin: MLA where a rank is stated, with an index where one is; else as usual."""
    if config.get("kv_lora_rank") is None:
        return grouped(config, layers)
    plain = latent_layer(config)
    if config.get("index_head_dim") is None:
        return [plain] * layers
    index = _with_index(plain, config)
    words = config.words("indexer_types", layers, ("full", "shared"))
    return [plain if word == "shared" else index for word in words or ["full"] * layers]


def latent_layer(config: HfConfig) -> Attention:
    rope = config.whole("qk_rope_head_dim", 0, WIDEST)
    return Attention(
        "mla",
        1,
        heads_of(config, "num_attention_heads"),
        config.whole("qk_nope_head_dim", 1, WIDEST) + rope,
        config.whole("v_head_dim", 1, WIDEST),
        gate=bool(config.get("mla_use_output_gate")),
        query_rank=config.whole("q_lora_rank", 0, WIDEST, default=0),
        kv_rank=config.whole("kv_lora_rank", 1, WIDEST),
        rope_dim=rope,
    )


def _with_index(layer: Attention, config: HfConfig) -> Attention:
    return replace(
        layer,
        index_heads=heads_of(config, "index_n_heads"),
        index_dim=config.whole("index_head_dim", 1, WIDEST),
        index_tokens=config.whole("index_topk", 1, WIDEST),
    )


def twice(config: HfConfig, layers: int) -> list[Attention | None]:
    """LongCat: two attentions a layer."""
    return latent_or_grouped(config, layers) * 2


def compressed(config: HfConfig, layers: int) -> list[Attention | None]:
    """DeepSeek-V4: a window in every layer, and entries of some tokens each beside it."""
    dim = config.whole("head_dim", 1, WIDEST)
    plain = Attention(
        "compressed",
        1,
        heads_of(config, "num_attention_heads"),
        dim,
        dim,
        1,
        window=config.whole("sliding_window", 1, WIDEST),
        query_rank=config.whole("q_lora_rank", 1, WIDEST),
        rope_dim=config.whole("qk_rope_head_dim", 0, WIDEST),
        output_rank=config.whole("o_lora_rank", 1, WIDEST),
        groups=config.whole("o_groups", 1, MOST_HEADS),
    )
    ratios = config.wholes("compress_ratios", MOST_LAYERS) or []
    if len(ratios) < layers:  # a longer list goes on with the draft layers
        said = f"'compress_ratios' has {len(ratios)} entries"
        raise BadInput(f"{config.where}: {said}; expected one for each of {layers} layers")
    found = {ratio: replace(plain, ratio=ratio) for ratio in set(ratios)}
    if 4 in found:
        found[4] = _with_index(found[4], config)
    return [found[ratio] for ratio in ratios[:layers]]


def kimi_linear(config: HfConfig, layers: int) -> list[Attention | None]:
    """MLA in the layers that are named, counted from 1, and KDA in the others."""
    nested = config.get("linear_attn_config")
    if not isinstance(nested, dict):
        return latent_or_grouped(config, layers)
    linear = HfConfig(nested, config.where)
    dim = linear.whole("head_dim", 1, WIDEST)
    state = Attention(
        "kda",
        1,
        heads_of(linear, "num_heads"),
        dim,
        dim,
        gate=bool(linear.get("use_full_rank_gate")),
        conv=linear.whole("short_conv_kernel_size", 1, WIDEST),
    )
    full = set(linear.wholes("full_attn_layers", MOST_LAYERS) or [])
    latent = latent_layer(config)
    return [latent if layer + 1 in full else state for layer in range(layers)]


def lightning(config: HfConfig, layers: int) -> list[Attention | None]:
    """MiniMax-M1: 0 in `attn_type_list` is lightning attention."""
    full, kinds = full_layer(config), config.wholes("attn_type_list", MOST_LAYERS)
    if kinds is None or len(kinds) != layers:
        return grouped(config, layers)
    state = Attention("lightning", 1, full.heads, full.key_dim, full.value_dim)
    return [full if kind else state for kind in kinds]


def jamba(config: HfConfig, layers: int) -> list[Attention | None]:
    period = config.whole("attn_layer_period", 1, MOST_LAYERS)
    offset = config.whole("attn_layer_offset", 0, MOST_LAYERS)
    hidden = config.whole("hidden_size", 1, WIDEST)
    state = Attention(
        "mamba",
        1,
        config.whole("mamba_expand", 1, WIDEST) * hidden,
        1,
        1,
        query_rank=config.whole("mamba_dt_rank", 1, WIDEST),
        state_dim=config.whole("mamba_d_state", 1, WIDEST),
        conv=config.whole("mamba_d_conv", 1, WIDEST),
    )
    full = full_layer(config)
    return [full if layer % period == offset else state for layer in range(layers)]


def nemotron(config: HfConfig, _layers: int) -> list[Attention | None]:
    """A layer is attention, a state, experts or a dense network, never two of them."""
    kinds = {"attention": full_layer(config), "full_attention": full_layer(config)}
    listed = blocks(config, "hybrid_override_pattern", "layers_block_type")
    if {"mamba", "linear_attention"} & set(listed):
        kinds["mamba"] = kinds["linear_attention"] = _mamba2(config)
    return [kinds.get(kind) for kind in listed]


def _mamba2(config: HfConfig) -> Attention:
    return Attention(
        "mamba2",
        1,
        heads_of(config, "mamba_num_heads"),
        1,
        config.whole("mamba_head_dim", 1, WIDEST),
        groups=config.whole("n_groups", 1, MOST_HEADS),
        state_dim=config.whole("ssm_state_size", 1, WIDEST),
        conv=config.whole("conv_kernel", 1, WIDEST),
    )
