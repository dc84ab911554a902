"""How each family of models spells its facts in a config.json: one row for each way."""

from dataclasses import dataclass, replace

import planner.model.attention_layers as heads
import planner.model.latent_layers as latent
import planner.model.moe_layers as rule
from planner.model.attention_layers import AttentionRule
from planner.model.moe_layers import LayerRule


@dataclass(frozen=True)
class Family:
    """The keys of one family; 'a|b' is a or else b."""

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
    attention: AttentionRule = heads.grouped
    dense: str = "instead"  # feed-forward networks: in place of experts, beside them, twice, or blocks
    dense_width: str = "intermediate_size"
    shared_width: str = ""  # the key of all shared experts together; as wide as routed ones without it
    tied: bool = False  # the LM head is the embedding, where the config does not say


_MIXTRAL = Family(
    rule.every, "num_local_experts", width="intermediate_size", top_k="num_experts_per_tok|experts_per_token"
)
_MINIMAX_M1 = replace(_MIXTRAL, attention=latent.lightning)
_OLMOE = Family(rule.every, "num_experts", width="intermediate_size")
_QWEN = Family(
    rule.sparse_step,
    "num_experts|num_local_experts",
    shared="shared_expert_intermediate_size",
    shared_width="shared_expert_intermediate_size",
    draft_layers=rule.draft,
)
_DEEPSEEK = Family(
    rule.after_dense,
    "n_routed_experts",
    shared="n_shared_experts",
    draft_layers=rule.draft,
    attention=latent.latent_or_grouped,
)
# hash-routed layers hold experts too
_DEEPSEEK_V4 = replace(_DEEPSEEK, moe_layers=rule.every, attention=latent.compressed)
# MiMo's draft layers are dense
_DOTS = Family(rule.after_dense, "n_routed_experts", shared="n_shared_experts", attention=heads.pattern)
_KIMI_LINEAR = Family(
    rule.after_dense,
    "num_experts|num_local_experts",
    top_k="num_experts_per_token|num_experts_per_tok",
    shared="num_shared_experts|n_shared_experts",
    draft_layers=rule.draft,
    dispatch_width="routed_expert_hidden_size",
    attention=latent.kimi_linear,
)
_MINIMAX_M3 = Family(
    rule.after_dense,
    "num_local_experts",
    width="moe_intermediate_size|intermediate_size",
    shared="n_shared_experts",
    draft_layers=rule.draft,
    attention=heads.indexed,
    dense_width="dense_intermediate_size",
    shared_width="shared_intermediate_size",
)
_STEP = Family(
    rule.enumerated,
    "num_experts|moe_num_experts|n_routed_experts",
    top_k="num_experts_per_tok|moe_top_k",
    shared=1,
    draft_layers=rule.draft_enumerated,
    shared_width="share_expert_dim|share_expert_dims",
)
_GEMMA = Family(  # the dense MLP beside is no shared expert
    rule.every, "num_experts", top_k="top_k_experts", attention=heads.global_heads, dense="beside", tied=True
)
_LLAMA4 = Family(
    rule.interleaved,
    "num_local_experts",
    width="intermediate_size",
    shared=1,
    attention=heads.chunks,
    dense_width="intermediate_size_mlp",
)
_JAMBA = Family(rule.period, "num_experts", width="intermediate_size", attention=latent.jamba)
_NEMOTRON_H = Family(
    rule.block_layers,
    "n_routed_experts",
    shared="n_shared_experts",
    draft_layers=rule.draft_blocks,
    layers="",
    dispatch_width="moe_latent_size",
    matrices=2,  # up and down, no gate: transformers, modeling_nemotron_h.py, NemotronHExperts
    attention=latent.nemotron,
    dense="blocks",
    shared_width="moe_shared_expert_intermediate_size",
)
_DBRX = Family(
    rule.every,
    "ffn_config.moe_num_experts",
    width="ffn_config.ffn_hidden_size",
    top_k="ffn_config.moe_top_k",
    layers="n_layers|num_hidden_layers",
    hidden="d_model|hidden_size",
)
_ERNIE = Family(rule.interval, "moe_num_experts", top_k="moe_k", shared="moe_num_shared_experts")
_HUNYUAN = Family(
    rule.after_skipped,
    "num_experts",
    width="moe_intermediate_size|intermediate_size",
    top_k="moe_topk",
    shared="num_shared_expert",
)
_LONGCAT = Family(
    rule.every,
    "n_routed_experts",
    width="expert_ffn_hidden_size",
    top_k="moe_topk",
    layers="num_layers",
    attention=latent.twice,
    dense="twice",
    dense_width="ffn_hidden_size",
)

# Which `model_type`s are of a family.
_MEMBERS = (
    (_MIXTRAL, "mixtral minimax_m2 phimoe gpt_oss"),
    (_MINIMAX_M1, "minimax_m1"),
    (_OLMOE, "olmoe grok-1"),
    (_QWEN, "qwen2_moe qwen3_moe qwen3_next qwen3_vl_moe qwen3_vl_moe_text qwen3_5_moe qwen3_5_moe_text"),
    (_DEEPSEEK, "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm4_moe glm_moe_dsa"),
    (_DEEPSEEK_V4, "deepseek_v4 deepseek_ref"),
    (_DOTS, "dots1 mimo_v2_flash"),
    (_KIMI_LINEAR, "kimi_k3 kimi_linear"),
    (_MINIMAX_M3, "minimax_m3 minimax_m3_vl"),
    (_STEP, "step3p5 step3p7"),
    (_GEMMA, "gemma4 gemma4_text"),
    (_LLAMA4, "llama4 llama4_text"),
    (_JAMBA, "jamba"),
    (_NEMOTRON_H, "nemotron_h"),
    (_DBRX, "dbrx"),
    (_ERNIE, "ernie4_5_moe"),
    (_HUNYUAN, "hunyuan_v1_moe"),
    (_LONGCAT, "longcat_flash"),
)
FAMILIES: dict[str, Family] = {
    model_type: family for family, members in _MEMBERS for model_type in members.split()
}
