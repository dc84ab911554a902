"""A config.json for each catalogue model, with its real experts and the quantisation of its release.

All else is the least that transformers and SGLang take; values are made for tests.
"""

import copy
from typing import Any

from planner.model import ModelSpec
from tests.engines.configs import _DEEPSEEK, _QWEN, _SPARSE, _STEP, CONFIGS, Config, _config, _framed

FP8: Config = {
    "quant_method": "fp8",
    "activation_scheme": "dynamic",
    "fmt": "e4m3",
    "weight_block_size": [128, 128],
}
MODELOPT_FP8: Config = {
    "quant_method": "modelopt",
    "quant_algo": "FP8",
    "kv_cache_quant_algo": None,
    "ignore": [],
}
MXFP4: Config = {"quant_method": "mxfp4", "modules_to_not_convert": []}


def compressed(weights: Config, activations: Config | None, layout: str) -> Config:
    """compressed-tensors with one scheme for all."""
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    kind = {"quant_method": "compressed-tensors", "format": layout, "ignore": ["lm_head"]}
    return {**kind, "config_groups": {"group_0": group}}


def _weights(bits: int, kind: str, **more: Any) -> Config:
    return {"num_bits": bits, "type": kind, "symmetric": True, "dynamic": False, **more}


INT4 = compressed(_weights(4, "int", strategy="group", group_size=32), None, "pack-quantized")
FP8_CHANNEL = compressed(
    _weights(8, "float", strategy="channel"),
    {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True},
    "float-quantized",
)
NVFP4: Config = {
    "quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16,
    "ignore": [],
}  # fmt: skip
AWQ: Config = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ: Config = {
    "quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True,
    "checkpoint_format": "gptq",
}  # fmt: skip
QUANTISATIONS: dict[str, Config | None] = {
    "bf16": None, "fp8": FP8, "fp8 a channel": FP8_CHANNEL, "int4": INT4, "awq": AWQ, "gptq": GPTQ,
    "ModelOpt fp8": MODELOPT_FP8, "nvfp4": NVFP4,
}  # fmt: skip

_ONE_GROUP: Config = {"n_group": 1, "topk_group": 1}
_KIMI = _config("kimi_k2", "DeepseekV3ForCausalLM", _DEEPSEEK, _ONE_GROUP)
_V4: Config = {
    **_ONE_GROUP, "num_key_value_heads": 1, "compress_ratios": [0, 4, 128, 4], "scoring_func": "sqrtsoftplus",
    "o_lora_rank": 128, "o_groups": 4, "swiglu_limit": 10.0, "hc_mult": 4, "num_hash_layers": 1,
    "sliding_window": 128, "window_size": 128,
}  # fmt: skip
_M3_ATTENTION: Config = {
    "use_sparse_attention": True, "sparse_block_size": 128, "sparse_topk_blocks": 16,
    "sparse_num_index_heads": 4, "sparse_index_dim": 128, "sparse_init_block": 0, "sparse_local_block": 1,
    "sparse_attention_freq": [0, 1, 1, 1], "sparse_disable_index_value": [0, 1, 1, 1],
    "sparse_score_type": "max",
}  # fmt: skip
_M3: Config = {
    "num_local_experts": 128, "rotary_dim": 64, "use_qk_norm": True, "n_shared_experts": 1,
    "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "scoring_func": "sigmoid", "hidden_act": "swigluoai",
    "moe_layer_freq": [0, 1, 1, 1], "dense_intermediate_size": 512, "sparse_attention_config": _M3_ATTENTION,
}  # fmt: skip
_MORE = {
    "kimi_k25": _framed(_KIMI, "kimi_k25", "KimiK25ForConditionalGeneration"),
    "deepseek_v4": _config("deepseek_v4", "DeepseekV4ForCausalLM", _DEEPSEEK, _SPARSE, _V4),
    "minimax_m3": _framed(
        _config("minimax_m2", "MiniMaxM3SparseForCausalLM", _M3),
        "minimax_m3_vl",
        "MiniMaxM3SparseForConditionalGeneration",
    ),
    "qwen3_vl_moe": _framed(
        _config("qwen3_vl_moe_text", "", _QWEN), "qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration"
    ),
    "step3p7": _framed(
        _config("step3p5", "Step3p5ForCausalLM", _STEP), "step3p7", "Step3p7ForConditionalGeneration"
    ),
}
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_TOP_K = ("num_experts_per_tok", "moe_top_k", "moe_topk", "moe_k")
_INNER = ("moe_intermediate_size", "expert_ffn_hidden_size")
_ONE_WIDTH = (
    "gpt_oss",
    "minimax_m2",
    "minimax_m3",
    "mixtral",
    "olmoe",
)  # `intermediate_size` is the experts'


def catalogue_config(spec: ModelSpec) -> Config | None:
    """None where no config of this architecture is known here."""
    known = CONFIGS.get(spec.architecture) or _MORE.get(spec.architecture)
    if known is None:
        return None
    config = copy.deepcopy(known)
    text = config.get("text_config", config)
    sizes = {**dict.fromkeys(_EXPERTS, spec.experts), **dict.fromkeys(_TOP_K, spec.top_k)}
    sizes |= dict.fromkeys(_INNER, spec.expert_intermediate)
    text.update({key: size for key, size in sizes.items() if key in text}, hidden_size=spec.hidden)
    if spec.architecture in _ONE_WIDTH:
        text["intermediate_size"] = spec.expert_intermediate
    if spec.dispatch_width != spec.hidden:
        text["moe_latent_size"] = spec.dispatch_width
    quantisation = release_quantisation(spec)
    if quantisation:
        config["quantization_config"] = quantisation
    return config


def release_quantisation(spec: ModelSpec) -> Config | None:
    if spec.architecture == "deepseek_v4" and spec.weight_dtype == "mxfp4":
        return {**FP8, "scale_fmt": "ue8m0"}  # its experts are known by the class
    kinds = {("fp8", "fp8"): FP8, ("fp8", "modelopt"): MODELOPT_FP8, ("mxfp4", "mxfp4"): MXFP4}
    kinds[("int4", "compressed-tensors")] = INT4
    return kinds.get((spec.weight_dtype, spec.quantization))
