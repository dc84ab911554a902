"""A config.json for each catalogue model that vLLM 0.33.0 makes a model of: catalogue.py's, and vLLM's own.

Values beside the real sizes of the experts are made for tests.
"""

import copy

from planner.model import ModelSpec
from tests.engines.catalogue import _V4, FP8, catalogue_config
from tests.engines.configs import _DEEPSEEK, _SPARSE, CONFIGS, Config, _config
from tests.engines.sglang_catalogue import kimi_k3

_WHOLE: Config = {
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "num_hidden_layers": 4,
    "vocab_size": 512,
}
_ONE_GROUP: Config = {"n_group": 1, "topk_group": 1}
_ROPE: Config = {"rope_type": "default", "rope_theta": 10000.0}
_TOWER: Config = {
    "img_token_compression_config": {}, "patch_size": 14, "num_channels": 3, "hidden_size": 64,
    "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 64, "layer_norm_eps": 1e-5,
}  # fmt: skip
_STEP_MORE: Config = {
    "use_moe_router_bias": True, "need_fp32_gate": True, "moe_router_activation": "sigmoid",
    "moe_router_scaling_factor": 1.0, "norm_expert_weight": True, "share_q_dim": None,
    "use_head_wise_attn_gate": False, "partial_rotary_factors": [1.0] * 4, "rope_parameters": _ROPE,
}  # fmt: skip


def config_of(spec: ModelSpec) -> Config | None:
    """None where no config of this architecture is known here."""
    make = _OWN.get(spec.architecture)
    if make is not None:
        return {**make(spec), "torch_dtype": "bfloat16", "dtype": "bfloat16"}
    config = catalogue_config(spec)
    if config is not None and spec.architecture == "minimax_m3":
        config["vision_config"] = _TOWER
    if config is not None and spec.architecture == "minimax_m2":
        config |= {"scoring_func": "sigmoid", "use_routing_bias": True}
    return config


def _sized(spec: ModelSpec, architecture: str, **more: object) -> Config:
    sizes = {
        "hidden_size": spec.hidden, "num_experts_per_tok": spec.top_k, "num_experts": spec.experts,
        "num_local_experts": spec.experts, "n_routed_experts": spec.experts,
        "moe_intermediate_size": spec.expert_intermediate,
    }  # fmt: skip
    return {"model_type": spec.architecture, "architectures": [architecture], **_WHOLE, **sizes, **more}


def _jamba(spec: ModelSpec) -> Config:
    more = {"intermediate_size": spec.expert_intermediate, "use_mamba_kernels": False}
    return _sized(spec, "JambaForCausalLM", **more)


def _phimoe(spec: ModelSpec) -> Config:
    return _sized(spec, "PhimoeForCausalLM", intermediate_size=spec.expert_intermediate)


def _dots1(spec: ModelSpec) -> Config:
    more = {**_ONE_GROUP, "n_shared_experts": 2, "first_k_dense_replace": 1, "norm_topk_prob": True}
    return _sized(spec, "Dots1ForCausalLM", routed_scaling_factor=1.0, **more)


def _hunyuan(spec: ModelSpec) -> Config:
    more = {"moe_topk": spec.top_k, "head_dim": 128, "rope_scaling": None, "rope_parameters": _ROPE}
    return _sized(spec, "HunYuanMoEV1ForCausalLM", intermediate_size=spec.expert_intermediate, **more)


def _llama4(spec: ModelSpec) -> Config:
    more = {"intermediate_size": spec.expert_intermediate, "intermediate_size_mlp": 512, "moe_layers": [1, 3]}
    return {**_sized(spec, "Llama4ForCausalLM", **more), "model_type": "llama4_text", "head_dim": 128}


def _gemma4(spec: ModelSpec) -> Config:
    more = {"enable_moe_block": True, "top_k_experts": spec.top_k, "intermediate_size": 512}
    return {**_sized(spec, "Gemma4ForCausalLM", **more), "model_type": "gemma4_text"}


def _v4_fp8(spec: ModelSpec) -> Config:
    """The experts of the original in fp8; its `model_type` is DeepSeek's own."""
    config = _config("deepseek_v4", "DeepseekV4ForCausalLM", _DEEPSEEK, _SPARSE, _V4)
    sizes = _sized(spec, "DeepseekV4ForCausalLM")
    sized = {name: size for name, size in sizes.items() if name in config and name != "model_type"}
    return {**config, **sized, "expert_dtype": "fp8", "quantization_config": {**FP8, "scale_fmt": "ue8m0"}}


def _step3p7(spec: ModelSpec) -> Config:
    """The language model alone, which its class hands everything to."""
    config = copy.deepcopy(CONFIGS["step3p5"])
    sizes = {"moe_num_experts": spec.experts, "moe_top_k": spec.top_k, "hidden_size": spec.hidden}
    sizes |= {"moe_intermediate_size": spec.expert_intermediate, **_STEP_MORE}
    return {**config, **sizes, **({"quantization_config": FP8} if spec.weight_dtype == "fp8" else {})}


_OWN = {
    "jamba": _jamba, "phimoe": _phimoe, "dots1": _dots1, "hunyuan_v1_moe": _hunyuan, "llama4": _llama4,
    "gemma4": _gemma4, "deepseek_ref": _v4_fp8, "step3p7": _step3p7, "kimi_k3": kimi_k3,
}  # fmt: skip
