"""A config.json for each catalogue model that SGLang 0.5.23 is asked about: catalogue.py's, and SGLang's own.

Values beside the real sizes of the experts are made for tests. It also has model types that SGLang refuses.
"""

from collections.abc import Callable
from typing import Any

from planner.model import ModelSpec
from tests.engines.catalogue import _EXPERTS, _ONE_GROUP, _V4, FP8, _weights, catalogue_config, compressed
from tests.engines.configs import _DEEPSEEK, _LATENT, _SPARSE, Config, _config, _framed


def config_of(spec: ModelSpec) -> Config | None:
    """None where no config of this architecture is known here."""
    make = _OWN.get(spec.architecture, catalogue_config)
    return make(spec)


def _sized(spec: ModelSpec, model_type: str, architecture: str, **more: Any) -> Config:
    """For the classes that call the width of an expert by either of its names."""
    experts = dict.fromkeys(_EXPERTS[:3], spec.experts)
    widths = dict.fromkeys(("moe_intermediate_size", "intermediate_size"), spec.expert_intermediate)
    sizes = {"hidden_size": spec.hidden, "num_experts_per_tok": spec.top_k, **experts, **widths}
    return _config(model_type, architecture, sizes, more)


def kimi_k3(spec: ModelSpec) -> Config:
    """Its experts compute in a width of their own, and are in the mxfp4 of compressed-tensors."""
    sizes: Config = {
        "num_experts_per_token": spec.top_k,
        "num_shared_experts": spec.shared_experts,
        "head_dim": None,
    }
    sizes |= {"routed_expert_hidden_size": spec.dispatch_width, "first_k_dense_replace": 1}
    text = {**_sized(spec, "kimi_linear", "KimiLinearForCausalLM", **_LATENT, **_KDA), **sizes}
    text = {
        name: value for name, value in text.items() if name not in ("n_routed_experts", "num_local_experts")
    }
    return _framed({**text, "quantization_config": _KIMI_MXFP4}, "kimi_k3", "KimiK3ForConditionalGeneration")


def _llama4(spec: ModelSpec) -> Config:
    more = {"intermediate_size_mlp": 512, "interleave_moe_layer_step": 1}
    text = _sized(spec, "llama4_text", "Llama4ForCausalLM", **more)
    return _framed(text, "llama4", "Llama4ForConditionalGeneration")


def _gemma4(spec: ModelSpec) -> Config:
    more: Config = {"enable_moe_block": True, "top_k_experts": spec.top_k, "sliding_window": 128}
    more |= {"layer_types": ["sliding_attention", "full_attention"] * 2}
    text = _sized(spec, "gemma4_text", "Gemma4ForCausalLM", **more)
    del text["rope_theta"]  # a number for each kind of layer, which its config class has
    return _framed({**text, "intermediate_size": 512}, "gemma4", "Gemma4ForConditionalGeneration")


def _dbrx(spec: ModelSpec) -> Config:
    experts = {"moe_num_experts": spec.experts, "moe_top_k": spec.top_k}
    return {
        "model_type": "dbrx", "architectures": ["DbrxForCausalLM"], "torch_dtype": "bfloat16",
        "d_model": spec.hidden, "n_heads": 16, "n_layers": 4, "max_seq_len": 2048, "vocab_size": 512,
        "attn_config": {"kv_n_heads": 4, "clip_qkv": 8, "rope_theta": 10000},
        "ffn_config": {**experts, "ffn_hidden_size": spec.expert_intermediate},
    }  # fmt: skip


def _deepseek_ref(spec: ModelSpec) -> Config:
    sizes: Config = {
        "n_routed_experts": spec.experts,
        "num_experts_per_tok": spec.top_k,
        "hidden_size": spec.hidden,
    }
    sizes |= {"moe_intermediate_size": spec.expert_intermediate, "expert_dtype": "fp8"}
    sizes["quantization_config"] = {**FP8, "scale_fmt": "ue8m0"}
    return _config("deepseek_ref", "DeepseekV4ForCausalLM", _DEEPSEEK, _SPARSE, _V4, sizes)


def _plain(architecture: str, **more: Any) -> Callable[[ModelSpec], Config]:
    return lambda spec: _sized(spec, spec.architecture, architecture, **more)


_KDA: Config = {
    "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
    "mla_use_nope": True,
    "linear_attn_config": {
        "kda_layers": [1, 2, 3], "full_attn_layers": [4], "num_heads": 16, "head_dim": 128,
        "short_conv_kernel_size": 4,
    },
}  # fmt: skip
_KIMI_MXFP4 = compressed(
    _weights(4, "float", strategy="group", group_size=32, scale_dtype="torch.uint8"),
    None,
    "mxfp4-pack-quantized",
) | {"ignore": ["lm_head", *(f"re:.*{part}.*" for part in ("self_attn", "shared_experts", "mlp", "gate"))]}
_OWN: dict[str, Callable[[ModelSpec], Config | None]] = {
    "kimi_k3": kimi_k3, "llama4": _llama4, "gemma4": _gemma4, "dbrx": _dbrx, "deepseek_ref": _deepseek_ref,
    "jamba": _plain("JambaForCausalLM", use_mamba_kernels=False), "phimoe": _plain("PhiMoEForCausalLM"),
    "grok-1": _plain("Grok1ModelForCausalLM"), "minimax_m1": _plain("MiniMaxM1ForCausalLM"),
    "dots1": _plain("Dots1ForCausalLM", **_ONE_GROUP, n_shared_experts=2, first_k_dense_replace=1),
    "hunyuan_v1_moe": _plain("HunYuanMoEV1ForCausalLM", num_shared_expert=1, use_mixed_mlp_moe=1),
}  # fmt: skip
