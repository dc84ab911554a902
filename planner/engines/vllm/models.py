"""Which models vLLM 0.33.0 runs, and for which it can move experts, by `model_type`."""

# Classes that are a MixtureOfExperts and count their MoE layers, themselves or in their language model: for
# the others (gpt_oss, kimi_k3, mimo_v2_flash, minimax_m2) vLLM has no expert balancer.
BALANCED = frozenset[str]().union(
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_ref", "kimi_k2", "kimi_k25"),
    ("glm4_moe", "glm4_moe_lite", "glm_moe_dsa"),
    ("qwen3_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_vl_moe", "qwen3_vl_moe_text"),
    ("gemma4", "gemma4_text", "llama4", "llama4_text"),
    ("ernie4_5_moe", "mixtral", "nemotron_h", "step3p5", "step3p7"),
    ("dots1", "hunyuan_v1_moe"),  # through its class for transformers' models
)

# Classes that deal a request's tokens out over the GPUs that share it before they go to experts
# (use_sequence_parallel_moe in their source); others let each GPU send them all.
SHARES_TOKENS = frozenset[str]().union(
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_ref", "kimi_k2", "kimi_k25"),
    ("glm_moe_dsa", "kimi_k3", "gpt_oss", "nemotron_h", "mimo_v2_flash", "granitemoe"),
    ("qwen3_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"),
    ("qwen3_vl_moe", "qwen3_vl_moe_text", "llama4", "llama4_text"),
)

# Why vLLM does not serve a model with its experts over all ranks; and the source, a file of the wheel.
_REGISTRY = "model_executor/models/registry.py:859-871, run"
NOT_SERVED = {
    "minimax_m1": ("its class was dropped in 0.23.0", _REGISTRY),
    "grok-1": ("its class was dropped in 0.24.0", _REGISTRY),
    "dbrx": (
        "it finds no experts in its config, and refuses --enable-expert-parallel",
        "config/model.py:1499, run",
    ),
}
