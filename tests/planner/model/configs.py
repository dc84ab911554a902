"""A config.json of each family, and how it is read or refused."""

from typing import Any

import pytest

from planner.base import BadInput
from planner.model import ModelSpec, spec_from_config

MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "num_hidden_layers": 32,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "torch_dtype": "bfloat16",
}
DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
QWEN: dict[str, Any] = {
    "model_type": "qwen2_moe",
    "num_hidden_layers": 6,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "torch_dtype": "bfloat16",
}
NEMOTRON: dict[str, Any] = {
    "model_type": "nemotron_h",
    "hybrid_override_pattern": "MEM*E-",
    "num_nextn_predict_layers": 2,
    "mtp_hybrid_override_pattern": "*E",
    "n_routed_experts": 512,
    "n_shared_experts": 1,
    "num_experts_per_tok": 22,
    "hidden_size": 4096,
    "moe_intermediate_size": 2688,
    "moe_latent_size": 1024,
    "dtype": "bfloat16",
}
HUNYUAN: dict[str, Any] = {
    "model_type": "hunyuan_v1_moe",
    "num_hidden_layers": 4,
    "num_experts": 64,
    "moe_topk": [8] * 4,
    "moe_intermediate_size": [3072] * 4,
    "num_shared_expert": [1] * 4,
    "hidden_size": 4096,
    "intermediate_size": 3072,
    "torch_dtype": "bfloat16",
}
ERNIE: dict[str, Any] = {
    "model_type": "ernie4_5_moe",
    "num_hidden_layers": 28,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": -1,
    "moe_layer_interval": 1,
    "moe_num_experts": 64,
    "moe_k": 6,
    "moe_num_shared_experts": 2,
    "hidden_size": 2560,
    "moe_intermediate_size": 1536,
    "torch_dtype": "bfloat16",
}
DBRX: dict[str, Any] = {
    "model_type": "dbrx",
    "n_layers": 40,
    "d_model": 6144,
    "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4, "ffn_hidden_size": 10752},
    "torch_dtype": "bfloat16",
}
MXFP4 = {"num_bits": 4, "type": "float", "group_size": 32}
KIMI: dict[str, Any] = {
    "model_type": "kimi_k3",
    "text_config": {
        "model_type": "kimi_linear",
        "num_hidden_layers": 93,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "num_experts": 896,
        "num_experts_per_token": 16,
        "num_shared_experts": 2,
        "num_expert_group": 1,
        "topk_group": 1,
        "hidden_size": 7168,
        "routed_expert_hidden_size": 3584,
        "moe_intermediate_size": 3072,
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": MXFP4}},
        },
    },
}
LLAMA4: dict[str, Any] = {
    "model_type": "llama4",
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "llama4_text",
        "num_hidden_layers": 48,
        "interleave_moe_layer_step": 2,
        "num_local_experts": 128,
        "num_experts_per_tok": 1,
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
    },
}
JAMBA: dict[str, Any] = {
    "model_type": "jamba",
    "num_hidden_layers": 32,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "torch_dtype": "bfloat16",
}
GPT_OSS = {**MIXTRAL, "model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}
GEMMA: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": {
        "model_type": "gemma4_text",
        "num_hidden_layers": 30,
        "enable_moe_block": True,
        "num_experts": 128,
        "top_k_experts": 8,
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "moe_intermediate_size": 704,
        "dtype": "bfloat16",
    },
}
STEP: dict[str, Any] = {
    "model_type": "step3p7",
    "num_hidden_layers": 6,
    "moe_layers_enum": "3,4,5,7",
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "hidden_size": 4096,
    "moe_intermediate_size": 1280,
    "num_nextn_predict_layers": 3,
    "torch_dtype": "bfloat16",
}
LONGCAT: dict[str, Any] = {
    "model_type": "longcat_flash",
    "num_layers": 28,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
    "hidden_size": 6144,
    "expert_ffn_hidden_size": 2048,
    "torch_dtype": "bfloat16",
}
CONFIGS = (MIXTRAL, DEEPSEEK, QWEN, NEMOTRON, HUNYUAN, ERNIE, DBRX, KIMI, LLAMA4, JAMBA, GPT_OSS, GEMMA, STEP)


def read(config: dict[str, Any], **changed: Any) -> ModelSpec:
    return spec_from_config({**config, **changed}, "model", "config.json")


def refusal(config: dict[str, Any], **changed: Any) -> str:
    with pytest.raises(BadInput) as caught:
        read(config, **changed)
    message = str(caught.value)
    assert message.startswith(("config.json: ", "model model: "))
    assert "\n" not in message
    return message


def without(config: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != key}
