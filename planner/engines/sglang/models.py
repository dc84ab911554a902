"""What SGLang 0.5.23 does differently for some models, by `model_type`."""

from planner.model import ModelSpec

# Offer their layout, but build or assert no redundant slots.
WITHOUT_REDUNDANCY = frozenset({"bailing_moe", "llada2_moe", "longcat_flash"})
READS_MAP = WITHOUT_REDUNDANCY.union(  # model_type of the classes with get_model_config_for_expert_location
    ("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_k25"),
    ("glm4_moe", "glm4_moe_lite", "glm_moe_dsa"),
    ("qwen2_moe", "qwen3_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"),
    ("qwen3_vl_moe", "qwen3_vl_moe_text"),
    ("minimax_m2", "minimax_m3", "minimax_m3_vl", "step3p5", "step3p7"),
    ("exaone_moe", "gpt_oss", "mimo_v2_flash", "nemotron_h"),
)
BARE_DRAFT = frozenset({"deepseek_v4"})  # draft layers without redundant slots
SPARSE_ATTENTION = frozenset({"deepseek_v32", "glm_moe_dsa"})  # KV cache in fp8 on SM100, in 16 bits on SM90
LINEAR_ATTENTION = frozenset({"qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"})

# Tokens of a page of the KV cache: the most that an attention backend chooses for a model on SM90 or SM100.
PAGE_TOKENS = 64
PAGES = {
    "deepseek_v4": 256,
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl", "mimo_v2_flash", "step3p5", "step3p7"), 128),
}

# Why the experts of a model cannot be reached through DeepEP, whatever their weights; and the source.
NO_DEEPEP = {
    "gpt_oss": (
        "the model's forward has no branch for an all-to-all (NotImplementedError)",
        "models/gpt_oss.py:277, run",
    ),
    **dict.fromkeys(
        ("minimax_m3", "minimax_m3_vl"),
        (
            "SGLang sets the Triton runner for it, which takes no DeepEP: DeepGEMM corrupts its output",
            "arg_groups/model_overrides/minimax_m3.py:227, run",
        ),
    ),
}
# Why SGLang does not start with a model at all; and the source.
_NO_CONFIG = (
    "the transformers that it runs with knows no such model_type",
    "configs and transformers 5.19.0, run",
)
NOT_SERVED = {
    **dict.fromkeys(("deepseek_ref", "grok-1", "minimax_m1"), _NO_CONFIG),
    "jamba": (
        "it has no class for it, and that of transformers is not compatible",
        "model_loader/utils.py:185, run",
    ),
}
# Run by SGLang's class for transformers' models: it offers a layout, but sends tokens by the router's ids,
# which no map translates to slots (models/transformers.py).
BY_TRANSFORMERS = frozenset({"dots1"})
# Its class cuts every expert over all ranks, whatever the EP size
# (models/dbrx.py:110), and calls its kernel itself.
SPLIT_OVER_ALL = frozenset({"dbrx"})
OWN_RUNNER = frozenset({"minimax_m3", "minimax_m3_vl"})  # set by SGLang; another word would override it


def page_tokens(model: ModelSpec) -> int:
    """A page size that every attention backend of the model divides."""
    return PAGES.get(model.architecture, PAGE_TOKENS)
