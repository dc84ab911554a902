"""A config.json of each family gives the right facts; anything else gives one line."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.model import ModelSpec, spec_from_config
from planner.model.config_json import _FAMILIES

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
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 4, "type": "float", "group_size": 32},
                }
            },
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


def test_mixtral_holds_experts_in_every_layer() -> None:
    """The plainest family, and the bytes of one expert by hand."""
    spec = read(MIXTRAL)
    assert (spec.architecture, spec.layers, spec.experts, spec.top_k) == ("mixtral", 32, 8, 2)
    assert spec.moe_layer_ids == tuple(range(32))
    assert spec.draft_layer_ids == ()
    assert spec.expert_bytes == 3 * 4096 * 14336 * 2


def test_deepseek_has_dense_layers_groups_and_a_draft_layer() -> None:
    """61 layers of which 3..60 hold experts, and the MTP layer is number 61."""
    spec = read(DEEPSEEK)
    assert spec.moe_layer_ids == tuple(range(3, 61))
    assert spec.draft_layer_ids == (61,)
    assert (spec.experts, spec.top_k, spec.shared_experts, spec.expert_groups, spec.groups_per_token) == (
        256,
        8,
        1,
        8,
        4,
    )
    assert (spec.weight_dtype, spec.dtype_assumed) == ("fp8", False)
    assert spec.expert_bytes == pytest.approx(44.04e6, rel=1e-3)


def test_deepseek_layer_step_counts_from_layer_zero() -> None:
    """With moe_layer_freq 2 the even layers after the dense ones hold experts."""
    assert read(DEEPSEEK, moe_layer_freq=2).moe_layer_ids == tuple(range(4, 61, 2))


def test_a_list_of_flags_wins_over_first_k_dense_replace() -> None:
    """MiniMax-M3 and MiMo name each layer."""
    spec = read(DEEPSEEK, num_hidden_layers=5, moe_layer_freq=[0, 1, 0, 1, 1])
    assert spec.moe_layer_ids == (1, 3, 4)


def test_a_list_of_words_wins_over_first_k_dense_replace() -> None:
    """GLM-5.2 names each layer dense or sparse."""
    assert read(
        DEEPSEEK, num_hidden_layers=4, mlp_layer_types=["dense", "sparse", "dense", "sparse"]
    ).moe_layer_ids == (1, 3)


def test_hash_routed_layers_hold_experts_too() -> None:
    """DeepSeek-V4 states no dense layer, and its experts' dtype apart from the rest."""
    spec = read(
        without(DEEPSEEK, "first_k_dense_replace"),
        model_type="deepseek_v4",
        num_hash_layers=3,
        expert_dtype="fp4",
    )
    assert spec.moe_layer_ids == tuple(range(61))
    assert spec.weight_dtype == "mxfp4"


def test_qwen_counts_its_step_from_layer_one() -> None:
    """decoder_sparse_step 2 means layers 1, 3, 5; mlp_only_layers are dense; the shared expert is stated as a width."""
    spec = read(QWEN, decoder_sparse_step=2, mlp_only_layers=[3])
    assert spec.moe_layer_ids == (1, 5)
    assert spec.shared_experts == 1


def test_qwen_with_a_shared_width_of_zero_has_no_shared_expert() -> None:
    """Qwen3-Coder states the width 0."""
    assert read(QWEN, shared_expert_intermediate_size=0).shared_experts == 0


def test_nemotron_reads_its_pattern_of_letters() -> None:
    """Two matrices an expert, a latent dispatch width, and draft steps of an attention and an expert layer."""
    spec = read(NEMOTRON)
    assert (spec.layers, spec.moe_layer_ids, spec.draft_layer_ids) == (6, (1, 4), (7, 9))
    assert (spec.dispatch_width, spec.hidden, spec.expert_matrices) == (1024, 4096, 2)
    assert spec.expert_bytes == 2 * 1024 * 2688 * 2


def test_nemotron_reads_its_list_of_blocks() -> None:
    """The newer spelling of the same facts."""
    config = without(NEMOTRON, "hybrid_override_pattern")
    assert read(config, layers_block_type=["mamba", "moe", "attention", "moe"]).moe_layer_ids == (1, 3)


def test_nemotron_without_latent_size_dispatches_the_hidden_vector() -> None:
    """moe_latent_size null means no latent projection."""
    assert read(NEMOTRON, moe_latent_size=None).dispatch_width == 4096


def test_hunyuan_reads_lists_with_one_entry_a_layer() -> None:
    """The release spells top_k, width and shared experts once a layer."""
    spec = read(HUNYUAN)
    assert (spec.top_k, spec.expert_intermediate, spec.shared_experts, spec.experts) == (8, 3072, 1, 64)
    assert spec.moe_layer_ids == (0, 1, 2, 3)


def test_hunyuan_skipped_layers_may_differ() -> None:
    """Only layers that hold experts must agree."""
    spec = read(HUNYUAN, moe_topk=[1, 8, 8, 8], moe_layer_num_skipped=1)
    assert (spec.top_k, spec.moe_layer_ids) == (8, (1, 2, 3))


def test_hunyuan_layers_that_differ_are_refused() -> None:
    """One top_k for all layers is what a plan can use."""
    assert "'moe_topk' differs between MoE layers" in refusal(HUNYUAN, moe_topk=[8, 8, 4, 8])


def test_ernie_reads_start_end_and_interval() -> None:
    """An end of -1 is the last layer; the interval counts from layer one, as in transformers."""
    assert read(ERNIE).moe_layer_ids == tuple(range(1, 28))
    assert read(
        ERNIE, moe_layer_start_index=3, moe_layer_end_index=10, moe_layer_interval=2
    ).moe_layer_ids == (3, 5, 7, 9)
    assert read(ERNIE).shared_experts == 2


def test_dbrx_reads_its_nested_ffn_config() -> None:
    """Facts one mapping down, under names of their own."""
    spec = read(DBRX)
    assert (spec.layers, spec.hidden, spec.experts, spec.top_k, spec.expert_intermediate) == (
        40,
        6144,
        16,
        4,
        10752,
    )


def test_kimi_reads_its_text_config() -> None:
    """A latent MoE inside a multimodal config, with packed 4-bit floats."""
    spec = read(KIMI)
    assert (spec.architecture, spec.experts, spec.top_k, spec.shared_experts) == ("kimi_k3", 896, 16, 2)
    assert (spec.dispatch_width, spec.hidden, spec.weight_dtype) == (3584, 7168, "mxfp4")
    assert spec.moe_layer_ids == tuple(range(1, 93))


def test_a_known_text_model_is_read_in_an_unknown_frame() -> None:
    """Vision wrappers of a known text model need no row of their own."""
    assert read(KIMI, model_type="kimi_k9").architecture == "kimi_linear"


def test_llama4_alternates() -> None:
    """Step 2 gives the odd layers; an explicit list wins."""
    assert read(LLAMA4).moe_layer_ids == tuple(range(1, 48, 2))
    listed = {**LLAMA4["text_config"], "moe_layers": [5, 3]}
    assert read(LLAMA4, text_config=listed).moe_layer_ids == (3, 5)


def test_jamba_has_a_period_and_an_offset() -> None:
    """Period 2, offset 1: the odd layers."""
    assert read(JAMBA).moe_layer_ids == tuple(range(1, 32, 2))


def test_gpt_oss_is_mxfp4() -> None:
    """Its quantization has no groups to read, only a method."""
    assert read(GPT_OSS).weight_dtype == "mxfp4"


def test_gemma_has_its_own_name_for_top_k() -> None:
    """The dense MLP beside the experts is no shared expert."""
    spec = read(GEMMA)
    assert (spec.top_k, spec.shared_experts, spec.expert_intermediate) == (8, 0, 704)


def test_step_enumerates_layers_and_drafts() -> None:
    """Draft layers 6..8 are dense unless named: 7 is."""
    spec = read(STEP)
    assert (spec.moe_layer_ids, spec.draft_layer_ids, spec.experts, spec.top_k) == ((3, 4, 5), (7,), 288, 8)


def test_longcat_zero_compute_experts_are_refused() -> None:
    """Tokens that choose an expert without weights go nowhere: the facts we keep cannot say so."""
    assert "256 zero-compute experts" in refusal(LONGCAT)
    assert read(LONGCAT, zero_expert_num=0).experts == 512


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "gptq", "bits": 4}, "int4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_algo": "FP8"}, "fp8"),
        ({"config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        ({"config_groups": {"a": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}, "int4"),
        ({"config_groups": {"a": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}, "nvfp4"),
        ({"quant_method": "fp8", "moe_quant_algo": "NVFP4"}, "nvfp4"),
        (
            {
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {
                    "layers.0.self_attn": {"quant_algo": "FP8"},
                    "layers.1.mlp.shared_experts": {"quant_algo": "FP8"},
                    "layers.1.mlp.experts": {"quant_algo": "NVFP4"},
                },
            },
            "nvfp4",
        ),
        (
            {
                "config_groups": {
                    "a": {"targets": ["layers.0.self_attn"], "weights": {"num_bits": 8, "type": "float"}},
                    "b": {
                        "targets": ["layers.0.mlp.experts"],
                        "weights": {"num_bits": 4, "type": "float", "group_size": 16},
                    },
                }
            },
            "nvfp4",
        ),
    ],
)
def test_quantization_gives_the_dtype_of_the_experts(quantization: dict[str, Any], dtype: str) -> None:
    """What is said of the experts counts, not what is said of attention."""
    spec = read(MIXTRAL, quantization_config=quantization)
    assert (spec.weight_dtype, spec.dtype_assumed) == (dtype, False)


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "bitsandbytes"},
        {"quant_method": "gptq", "bits": 3},
        {"quant_algo": "MIXED_PRECISION"},
        {"config_groups": {"a": {"weights": {"num_bits": 2, "type": "int"}}}},
        {
            "config_groups": {
                "a": {"weights": {"num_bits": 8, "type": "float"}},
                "b": {"weights": {"num_bits": 4, "type": "int"}},
            }
        },
        {"quantized_layers": {"attention": {"quant_algo": "FP8"}}},
        {"config_groups": []},
        "fp8",
    ],
)
def test_unknown_quantization_is_refused(quantization: Any) -> None:
    """A wrong guess of the dtype is a wrong memory ledger."""
    assert "quantiz" in refusal(MIXTRAL, quantization_config=quantization)


@pytest.mark.parametrize(
    ("stored", "assumed"),
    [("bfloat16", False), ("float16", False), ("torch.bfloat16", False), ("float32", True), (None, True)],
)
def test_a_dtype_that_is_not_stated_is_marked_as_assumed(stored: str | None, assumed: bool) -> None:
    """float32 releases are served in 16 bits: that is an assumption about the engine."""
    spec = read(MIXTRAL, torch_dtype=stored)
    assert (spec.weight_dtype, spec.dtype_assumed) == ("bf16", assumed)


def test_unknown_model_type_is_named_with_the_known_ones() -> None:
    """The reader sees what was found and what could be."""
    message = refusal(MIXTRAL, model_type="megamoe")
    assert "'megamoe'" in message
    assert all(known in message for known in _FAMILIES)
    assert "dense" not in message


def test_unknown_model_type_without_experts_is_called_dense() -> None:
    """The likeliest mistake: the config of a dense model."""
    assert "dense model" in refusal({"model_type": "llama", "num_hidden_layers": 32})


@pytest.mark.parametrize("experts", [None, 0, 1])
def test_a_dense_member_of_a_family_is_refused(experts: int | None) -> None:
    """Nothing to place."""
    assert "a dense model has no experts to place" in refusal(MIXTRAL, num_local_experts=experts)


def test_gemma_with_its_expert_block_off_is_dense() -> None:
    """The switch, not the number, decides."""
    assert "'enable_moe_block' is false" in refusal(
        GEMMA, text_config={**GEMMA["text_config"], "enable_moe_block": False}
    )


@pytest.mark.parametrize(
    "key",
    [
        "num_hidden_layers",
        "num_experts_per_tok",
        "hidden_size",
        "moe_intermediate_size",
        "first_k_dense_replace",
    ],
)
def test_a_missing_key_is_named_with_its_file(key: str) -> None:
    """No class default fills the gap."""
    assert f"the key '{key}' is missing" in refusal(without(DEEPSEEK, key))


@pytest.mark.parametrize(
    "value",
    [10**9, pytest.param(10**5000, id="5001-digits"), 0, -1, 61.0, "61", True, [61], {}, float("nan")],
)
def test_a_hostile_number_of_layers_is_refused(value: Any) -> None:
    """Refused by its size before any loop runs over it."""
    assert "'num_hidden_layers' is" in refusal(DEEPSEEK, num_hidden_layers=value)


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        (MIXTRAL, {"num_local_experts": 10**6}),
        (MIXTRAL, {"hidden_size": 10**9}),
        (MIXTRAL, {"num_experts_per_tok": 9}),
        (DEEPSEEK, {"num_nextn_predict_layers": 10**9}),
        (DEEPSEEK, {"first_k_dense_replace": 61}),
        (DEEPSEEK, {"moe_layer_freq": 0}),
        (DEEPSEEK, {"moe_layer_freq": [1, 0]}),
        (DEEPSEEK, {"moe_layer_freq": [2] * 61}),
        (DEEPSEEK, {"mlp_layer_types": ["sparse"]}),
        (DEEPSEEK, {"mlp_layer_types": ["wet"] * 61}),
        (QWEN, {"decoder_sparse_step": 0}),
        (QWEN, {"mlp_only_layers": [0.5]}),
        (NEMOTRON, {"hybrid_override_pattern": "MEX"}),
        (NEMOTRON, {"hybrid_override_pattern": "E" * 20_000}),
        (NEMOTRON, {"hybrid_override_pattern": "M*M*"}),
        (NEMOTRON, {"num_nextn_predict_layers": 1000, "mtp_hybrid_override_pattern": "E" * 100}),
        (HUNYUAN, {"moe_topk": [8]}),
        (JAMBA, {"expert_layer_offset": 2}),
        (STEP, {"moe_layers_enum": "3,four"}),
        (LLAMA4, {"text_config": {**LLAMA4["text_config"], "moe_layers": [48]}}),
        (MIXTRAL, {"torch_dtype": ["bfloat16"]}),
        (MIXTRAL, {"model_type": None}),
        (MIXTRAL, {"model_type": ["mixtral"]}),
    ],
)
def test_a_wrong_fact_is_refused_in_one_line(config: dict[str, Any], changed: dict[str, Any]) -> None:
    """Each ends in BadInput, short enough to read."""
    assert len(refusal(config, **changed)) < 900


def model_or_one_line(config: Any) -> bool:
    try:
        return isinstance(spec_from_config(config, "m", "f"), ModelSpec)
    except BadInput as error:
        return "\n" not in str(error)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["bfloat16", "fp8", "moe", "E", "1,2"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(data=st.data(), config=st.sampled_from(CONFIGS))
def test_any_damage_to_a_config_gives_a_model_or_one_line(
    data: st.DataObject, config: dict[str, Any]
) -> None:
    """Replace, drop and add values of a good config: never another exception than BadInput."""
    damaged = json.loads(json.dumps(config))
    part = data.draw(
        st.sampled_from(
            [entry for entry in (damaged, damaged.get("text_config"), damaged.get("ffn_config")) if entry]
        )
    )
    extra = [
        "mlp_layer_types",
        "moe_layer_freq",
        "mlp_only_layers",
        "moe_layers",
        "quantization_config",
        "n_group",
        "expert_dtype",
        "zero_expert_num",
    ]
    for key in data.draw(st.lists(st.sampled_from(sorted({*part, *extra})), min_size=1, max_size=3)):
        part[key] = data.draw(JSON)
    assert model_or_one_line(damaged)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(config=JSON, kind=st.sampled_from(sorted(_FAMILIES)))
def test_any_json_gives_a_model_or_one_line(config: Any, kind: str) -> None:
    """Not even a mapping is promised."""
    assert model_or_one_line(config)
    if isinstance(config, dict):
        assert model_or_one_line({**config, "model_type": kind})
