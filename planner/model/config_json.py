"""A Hugging Face config.json -> ModelSpec. `_FAMILIES` has one row for each way of spelling the facts.

A fact the file does not state is refused, not filled in with a class default: defaults and releases differ (OLMoE, dots1). The text model of a
multimodal config is read from its `text_config`.
"""

from dataclasses import dataclass
from typing import Any

import planner.model.moe_layers as rule
from planner.base import BadInput
from planner.model.model import ModelSpec
from planner.model.moe_layers import MOST_LAYERS, HfConfig, LayerRule, quoted
from planner.model.weight_dtype import shown, weight_dtype

MOST_EXPERTS = 100_000
LARGEST_WIDTH = 10_000_000


@dataclass(frozen=True)
class _Family:
    """How one family spells its facts."""

    moe_layers: LayerRule
    experts: str
    width: str = "moe_intermediate_size"
    top_k: str = "num_experts_per_tok"
    shared: str | int = 0  # a key, or the number every model of the family has
    draft_layers: LayerRule = rule.no_draft
    layers: str = "num_hidden_layers"
    hidden: str = "hidden_size"
    dispatch_width: str = ""  # latent MoE only
    matrices: int = 3
    groups: str = "n_group|num_expert_group"


_MIXTRAL = _Family(
    rule.every, "num_local_experts", width="intermediate_size", top_k="num_experts_per_tok|experts_per_token"
)
_QWEN = _Family(
    rule.sparse_step,
    "num_experts|num_local_experts",
    shared="shared_expert_intermediate_size",
    draft_layers=rule.draft,
)
_DEEPSEEK = _Family(rule.after_dense, "n_routed_experts", shared="n_shared_experts", draft_layers=rule.draft)
_DEEPSEEK_V4 = _Family(
    rule.every, "n_routed_experts", shared="n_shared_experts", draft_layers=rule.draft
)  # hash-routed layers hold experts too
_DOTS = _Family(
    rule.after_dense, "n_routed_experts", shared="n_shared_experts"
)  # also MiMo: its draft layers are dense
_KIMI_LINEAR = _Family(
    rule.after_dense,
    "num_experts|num_local_experts",
    top_k="num_experts_per_token|num_experts_per_tok",
    shared="num_shared_experts|n_shared_experts",
    draft_layers=rule.draft,
    dispatch_width="routed_expert_hidden_size",
)
_MINIMAX_M3 = _Family(
    rule.after_dense,
    "num_local_experts",
    width="moe_intermediate_size|intermediate_size",
    shared="n_shared_experts",
    draft_layers=rule.draft,
)
_STEP = _Family(
    rule.enumerated,
    "num_experts|moe_num_experts|n_routed_experts",
    top_k="num_experts_per_tok|moe_top_k",
    shared=1,
    draft_layers=rule.draft_enumerated,
)
_GEMMA = _Family(
    rule.every, "num_experts", top_k="top_k_experts"
)  # the dense MLP beside the experts is no shared expert
_LLAMA4 = _Family(rule.interleaved, "num_local_experts", width="intermediate_size", shared=1)
_NEMOTRON_H = _Family(
    rule.block_layers,
    "n_routed_experts",
    shared="n_shared_experts",
    draft_layers=rule.draft_blocks,
    layers="",
    dispatch_width="moe_latent_size",
    matrices=2,  # up and down, no gate: transformers, modeling_nemotron_h.py, NemotronHExperts
)
_DBRX = _Family(
    rule.every,
    "ffn_config.moe_num_experts",
    width="ffn_config.ffn_hidden_size",
    top_k="ffn_config.moe_top_k",
    layers="n_layers|num_hidden_layers",
    hidden="d_model|hidden_size",
)
_ERNIE = _Family(rule.interval, "moe_num_experts", top_k="moe_k", shared="moe_num_shared_experts")
_HUNYUAN = _Family(
    rule.after_skipped,
    "num_experts",
    width="moe_intermediate_size|intermediate_size",
    top_k="moe_topk",
    shared="num_shared_expert",
)
_LONGCAT = _Family(
    rule.every, "n_routed_experts", width="expert_ffn_hidden_size", top_k="moe_topk", layers="num_layers"
)

_FAMILIES: dict[str, _Family] = {
    **dict.fromkeys(("mixtral", "minimax_m1", "minimax_m2", "phimoe", "gpt_oss"), _MIXTRAL),
    **dict.fromkeys(("olmoe", "grok-1"), _Family(rule.every, "num_experts", width="intermediate_size")),
    **dict.fromkeys(
        (
            "qwen2_moe",
            "qwen3_moe",
            "qwen3_next",
            "qwen3_vl_moe",
            "qwen3_vl_moe_text",
            "qwen3_5_moe",
            "qwen3_5_moe_text",
        ),
        _QWEN,
    ),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25", "glm4_moe", "glm_moe_dsa"),
        _DEEPSEEK,
    ),
    **dict.fromkeys(("deepseek_v4", "deepseek_ref"), _DEEPSEEK_V4),
    **dict.fromkeys(("dots1", "mimo_v2_flash"), _DOTS),
    **dict.fromkeys(("kimi_k3", "kimi_linear"), _KIMI_LINEAR),
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl"), _MINIMAX_M3),
    **dict.fromkeys(("step3p5", "step3p7"), _STEP),
    **dict.fromkeys(("gemma4", "gemma4_text"), _GEMMA),
    **dict.fromkeys(("llama4", "llama4_text"), _LLAMA4),
    "jamba": _Family(rule.period, "num_experts", width="intermediate_size"),
    "nemotron_h": _NEMOTRON_H,
    "dbrx": _DBRX,
    "ernie4_5_moe": _ERNIE,
    "hunyuan_v1_moe": _HUNYUAN,
    "longcat_flash": _LONGCAT,
}


def spec_from_config(config: dict[str, Any], name: str, source: str) -> ModelSpec:
    """The model a config.json describes. `source` names the file in messages. BadInput where it is not a MoE model we know, or a fact is missing."""
    if not isinstance(config, dict):
        raise BadInput(f"{source}: expected a mapping of model facts; got {shown(config)}")
    text = config.get("text_config")
    reader = HfConfig(text if isinstance(text, dict) else config, source)
    architecture, family = _family(config, reader)
    _refuse_dense(reader, family)
    layers = (
        reader.whole(family.layers, 1, MOST_LAYERS)
        if family.layers
        else len(rule.blocks(reader, "hybrid_override_pattern", "layers_block_type"))
    )
    moe_layer_ids = family.moe_layers(reader, layers)
    hidden = reader.whole(family.hidden, 1, LARGEST_WIDTH)
    dtype, assumed = weight_dtype(config, reader.values, source)
    return ModelSpec(
        name=name,
        architecture=architecture,
        layers=layers,
        moe_layer_ids=tuple(moe_layer_ids),
        experts=_same_everywhere(reader, family.experts, layers, moe_layer_ids, 2, MOST_EXPERTS),
        top_k=_same_everywhere(reader, family.top_k, layers, moe_layer_ids, 1, MOST_EXPERTS),
        hidden=hidden,
        expert_intermediate=_same_everywhere(reader, family.width, layers, moe_layer_ids, 1, LARGEST_WIDTH),
        dispatch_width=reader.whole(family.dispatch_width, 1, LARGEST_WIDTH, default=hidden)
        if family.dispatch_width
        else hidden,
        weight_dtype=dtype,
        source=source,
        draft_layer_ids=tuple(family.draft_layers(reader, layers)),
        shared_experts=_shared(reader, family.shared, layers, moe_layer_ids),
        expert_groups=reader.whole(family.groups, 1, MOST_EXPERTS, default=1),
        groups_per_token=reader.whole("topk_group", 1, MOST_EXPERTS, default=1),
        expert_matrices=family.matrices,
        dtype_assumed=assumed,
    )


def _family(config: dict[str, Any], reader: HfConfig) -> tuple[str, _Family]:
    """The whole model's type where we know it, else its text model's (some releases name only one of them, or put a known text model in a new frame)."""
    named = [kind for kind in (config.get("model_type"), reader.values.get("model_type")) if kind is not None]
    for kind in named:
        if isinstance(kind, str) and kind in _FAMILIES:
            return kind, _FAMILIES[kind]
    if not named:
        raise BadInput(f"{reader.where}: the key 'model_type' is missing; give the model's config.json")
    dense = (
        ""
        if any("expert" in str(key) for key in reader.values)
        else " and names no experts, so it may be a dense model with nothing to place"
    )
    raise BadInput(
        f"{reader.where}: model_type {shown(named[0])} is not one we read{dense}; known are {', '.join(sorted(_FAMILIES))}"
    )


def _refuse_dense(reader: HfConfig, family: _Family) -> None:
    experts = reader.get(family.experts)
    if experts is None or experts in (0, 1):
        said = (
            f"the key {quoted(family.experts)} is missing or null"
            if experts is None
            else f"{quoted(family.experts)} is {experts}"
        )
        raise BadInput(
            f"{reader.where}: {said}: a dense model has no experts to place; give the config.json of a Mixture-of-Experts model"
        )
    if reader.get("enable_moe_block") is False:
        raise BadInput(
            f"{reader.where}: 'enable_moe_block' is false: a dense model has no experts to place; give the config.json of a Mixture-of-Experts model"
        )
    zero = reader.get("zero_expert_num")
    if zero is not None and reader.check("zero_expert_num", zero, 0, MOST_EXPERTS):
        raise BadInput(
            f"{reader.where}: its {zero} zero-compute experts take tokens but sit on no GPU; moeplan cannot describe such a model yet"
        )


def _same_everywhere(
    reader: HfConfig, keys: str, layers: int, moe_layer_ids: list[int], least: int, most: int
) -> int:
    """A number, or Hunyuan's list with one for each layer, which must agree over the MoE layers."""
    value = reader.get(keys)
    if not isinstance(value, list):
        return reader.whole(keys, least, most)
    if len(value) != layers:
        raise BadInput(
            f"{reader.where}: {quoted(keys)} has {len(value)} entries; expected one for each of {layers} layers"
        )
    chosen = [reader.check(keys, value[layer], least, most) for layer in moe_layer_ids if layer < layers]
    if len(set(chosen)) != 1:
        raise BadInput(
            f"{reader.where}: {quoted(keys)} differs between MoE layers ({shown(sorted(set(chosen)))}); moeplan plans models with one value"
        )
    return chosen[0]


def _shared(reader: HfConfig, shared: str | int, layers: int, moe_layer_ids: list[int]) -> int:
    if isinstance(shared, int):
        return shared
    if reader.get(shared) is None:
        return 0
    count = _same_everywhere(reader, shared, layers, moe_layer_ids, 0, LARGEST_WIDTH)
    return (
        min(count, 1) if shared.endswith("_size") else count
    )  # Qwen states the width of its one shared expert
