"""Five families of Mixture-of-Experts models at a toy size, random weights, in transformers' own code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="recording a model needs torch (pip install torch transformers)")
transformers = pytest.importorskip(
    "transformers", reason="recording a model needs transformers (pip install torch transformers)"
)

SMALL = {
    "vocab_size": 256,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
MLA = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}

CONFIGS: dict[str, Callable[[], Any]] = {
    "mixtral": lambda: transformers.MixtralConfig(**SMALL, num_local_experts=8, num_experts_per_tok=2),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
        **SMALL,
        head_dim=8,
        num_experts=16,
        num_experts_per_tok=4,
        moe_intermediate_size=16,
        mlp_only_layers=[1],
    ),
    "deepseek_v3": lambda: transformers.DeepseekV3Config(
        **SMALL,
        **MLA,
        n_routed_experts=16,
        num_experts_per_tok=4,
        moe_intermediate_size=16,
        first_k_dense_replace=1,
        n_group=4,
        topk_group=2,
        n_shared_experts=1,
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SMALL,
        head_dim=8,
        num_local_experts=8,
        num_experts_per_tok=4,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    ),
    "olmoe": lambda: transformers.OlmoeConfig(**SMALL, num_experts=16, num_experts_per_tok=4),
}
MOE_LAYERS = {
    "mixtral": (0, 1, 2),
    "qwen3_moe": (0, 2),
    "deepseek_v3": (1, 2),
    "gpt_oss": (0, 1, 2),
    "olmoe": (0, 1, 2),
}


def make_model(config: Any) -> Any:
    """The model of a config with random weights, the same every time.

    A router's bias is random too, where it has one.
    """
    import torch

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for name, tensor in (*model.named_buffers(), *model.named_parameters()):
        if name.endswith(("e_score_correction_bias", "router.bias")):
            tensor.data.normal_(std=0.05)
    return model


def save_model(kind: str, folder: Path) -> Path:
    """The folder, with a model of one of the five families in it."""
    make_model(CONFIGS[kind]()).save_pretrained(folder)
    return folder


def save_tokenizer(folder: Path) -> None:
    """A tokenizer whose tokens are words of one letter, beside the model in the folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = {chr(code): code for code in range(256)}
    tokenizer = Tokenizer(models.WordLevel(letters, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(folder)
