"""The least config.json that transformers and SGLang 0.5.23 take for each architecture of the matrix.

By `model_type`. Values are made for tests.
"""

from typing import Any

Config = dict[str, Any]

_COMMON: Config = {
    "torch_dtype": "bfloat16", "vocab_size": 512, "hidden_size": 2048, "intermediate_size": 512,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "hidden_act": "silu",
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000, "bos_token_id": 0,
    "eos_token_id": 1, "num_hidden_layers": 4, "num_experts_per_tok": 4,
}  # fmt: skip
_LATENT: Config = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "q_lora_rank": 64,
    "num_key_value_heads": 16,
}
_ROUTED: Config = {
    "n_routed_experts": 64, "n_shared_experts": 1, "moe_intermediate_size": 256, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
}  # fmt: skip
_DEEPSEEK: Config = {
    **_LATENT,
    **_ROUTED,
    "moe_layer_freq": 1,
    "n_group": 8,
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
}
_SPARSE: Config = {"index_n_heads": 4, "index_head_dim": 128, "index_topk": 256}
_QWEN: Config = {
    "num_experts": 128,
    "moe_intermediate_size": 256,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}
_LINEAR: Config = {
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_num_key_heads": 4, "linear_num_value_heads": 8, "full_attention_interval": 4,
    "partial_rotary_factor": 0.25, "shared_expert_intermediate_size": 256,
}  # fmt: skip
_MIMO: Config = {
    "n_routed_experts": 64, "moe_intermediate_size": 256, "moe_layer_freq": [0, 1, 1, 1],
    "hybrid_layer_pattern": [0, 1, 1, 0], "sliding_window": 128, "sliding_window_size": 128,
    "v_head_dim": 128, "swa_num_attention_heads": 16, "swa_num_key_value_heads": 4, "swa_head_dim": 128,
    "swa_v_head_dim": 128, "n_group": 1, "topk_group": 1, "scoring_func": "sigmoid",
    "topk_method": "noaux_tc", "norm_topk_prob": True, "layernorm_epsilon": 1e-5,
    "partial_rotary_factor": 0.5, "swa_rope_theta": 10000,
}  # fmt: skip
_NEMOTRON: Config = {
    "hybrid_override_pattern": "ME*E", "n_routed_experts": 64, "n_shared_experts": 1,
    "moe_intermediate_size": 256, "moe_shared_expert_intermediate_size": 256, "n_group": 1, "topk_group": 1,
    "mamba_num_heads": 16, "mamba_head_dim": 64, "n_groups": 4, "ssm_state_size": 64, "conv_kernel": 4,
    "mlp_hidden_act": "relu2", "layer_norm_epsilon": 1e-5,
}  # fmt: skip
_STEP: Config = {
    "moe_num_experts": 64, "moe_top_k": 4, "moe_intermediate_size": 256, "moe_layers_enum": "1,2,3",
    "share_expert_dims": 256, "share_expert_dim": 256, "num_attention_groups": 4,
    "layer_types": ["full_attention"] * 4,
}  # fmt: skip
_LONGCAT: Config = {
    **_LATENT, "n_routed_experts": 64, "expert_ffn_hidden_size": 256, "ffn_hidden_size": 512, "moe_topk": 4,
    "num_layers": 4, "zero_expert_num": 0, "routed_scaling_factor": 2.5,
}  # fmt: skip
_ERNIE: Config = {
    "moe_num_experts": 64, "moe_k": 4, "moe_intermediate_size": 256, "moe_num_shared_experts": 1,
    "moe_layer_start_index": 1, "moe_layer_end_index": 3, "moe_layer_interval": 1,
}  # fmt: skip


def _config(model_type: str, architecture: str, *parts: Config) -> Config:
    joined: Config = {**_COMMON}
    for part in parts:
        joined.update(part)
    return {**joined, "model_type": model_type, "architectures": [architecture]}


def _framed(text: Config, model_type: str, architecture: str) -> Config:
    """A multimodal model's config around its text model's."""
    return {
        "model_type": model_type,
        "architectures": [architecture],
        "torch_dtype": "bfloat16",
        "text_config": text,
        "vision_config": {},
    }


_ALL = (
    _config(
        "deepseek_v2",
        "DeepseekV2ForCausalLM",
        _DEEPSEEK,
        {"topk_method": "group_limited_greedy", "scoring_func": "softmax"},
    ),
    _config("deepseek_v3", "DeepseekV3ForCausalLM", _DEEPSEEK, {"num_nextn_predict_layers": 1}),
    _config("deepseek_v32", "DeepseekV32ForCausalLM", _DEEPSEEK, _SPARSE),
    _config(
        "kimi_k2", "DeepseekV3ForCausalLM", _DEEPSEEK, {"n_group": 1, "topk_group": 1, "n_routed_experts": 96}
    ),
    _config(
        "glm4_moe",
        "Glm4MoeForCausalLM",
        _ROUTED,
        {"n_routed_experts": 160, "use_qk_norm": True, "partial_rotary_factor": 0.5},
    ),
    _config("glm_moe_dsa", "GlmMoeDsaForCausalLM", _DEEPSEEK, _SPARSE, {"n_group": 1, "topk_group": 1}),
    _config(
        "qwen2_moe", "Qwen2MoeForCausalLM", _QWEN, {"num_experts": 64, "shared_expert_intermediate_size": 256}
    ),
    _config("qwen3_moe", "Qwen3MoeForCausalLM", _QWEN, {"mlp_only_layers": [0]}),
    _config("qwen3_next", "Qwen3NextForCausalLM", _QWEN, _LINEAR),
    _framed(
        _config("qwen3_5_moe_text", "", _QWEN, _LINEAR), "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration"
    ),
    _config(
        "gpt_oss",
        "GptOssForCausalLM",
        {"num_local_experts": 32, "head_dim": 64, "sliding_window": 128, "swiglu_limit": 7.0},
    ),
    _config(
        "minimax_m2", "MiniMaxM2ForCausalLM", {"num_local_experts": 64, "rotary_dim": 64, "use_qk_norm": True}
    ),
    _config("mimo_v2_flash", "MiMoV2FlashForCausalLM", _MIMO),
    _config("nemotron_h", "NemotronHForCausalLM", _NEMOTRON),
    _config("step3p5", "Step3p5ForCausalLM", _STEP),
    _config("longcat_flash", "LongcatFlashForCausalLM", _LONGCAT),
    _config("mixtral", "MixtralForCausalLM", {"num_local_experts": 32, "num_experts_per_tok": 2}),
    _config("olmoe", "OlmoeForCausalLM", {"num_experts": 64}),
    _config("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", _ERNIE),
)
CONFIGS: dict[str, Config] = {config["model_type"]: config for config in _ALL}
IGNORING = ("mixtral", "olmoe", "ernie4_5_moe")  # SGLang has no expert location for these
