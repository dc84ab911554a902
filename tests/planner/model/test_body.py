"""A model outside its routed experts: weights by part, KV cache, states and dtypes."""

import re
from dataclasses import replace
from typing import Any

import pytest

from planner.base import BadInput
from planner.model import ModelSpec, body_from_dict, body_to_dict, find_model, model_names, spec_from_config
from planner.model.attention import Attention
from planner.model.body import Body
from planner.model.body_weights import body_parts, total_weights
from tests.planner.model.configs import DEEPSEEK, MIXTRAL, NEMOTRON

# Published totals, in billions, of releases whose name or card says one (draft layers apart).
PUBLISHED = {
    "ai21labs/Jamba-v0.1": 52,
    "allenai/OLMoE-1B-7B-0924": 6.9,
    "databricks/dbrx-instruct": 132,
    "deepseek-ai/DeepSeek-V2": 236,
    "deepseek-ai/DeepSeek-V2-Lite": 15.7,
    "deepseek-ai/DeepSeek-V3": 671,
    "hpcai-tech/grok-1": 314,
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": 400,
    "microsoft/Phi-3.5-MoE-instruct": 41.9,
    "MiniMaxAI/MiniMax-M1": 456,
    "mistralai/Mixtral-8x22B-v0.1": 141,
    "mistralai/Mixtral-8x7B-v0.1": 46.7,
    "openai/gpt-oss-120b": 116.8,
    "openai/gpt-oss-20b": 20.9,
    "Qwen/Qwen1.5-MoE-A2.7B": 14.3,
    "rednote-hilab/dots.llm1.inst": 142,
    "tencent/Hunyuan-A13B-Instruct": 80,
    "XiaomiMiMo/MiMo-V2-Flash": 309,
    "zai-org/GLM-4.5": 355,
    "zai-org/GLM-4.5-Air": 106,
}
NAMED = {  # the size that the name itself says; a vision tower (about 0.5 B) is no part of a body
    name: float(size[1])
    for name in model_names()
    if (size := re.search(r"-(\d+)B(-A\d+B|$)", name, re.IGNORECASE)) and "gpt-oss" not in name
}
ROUNDED = {"ai21labs/Jamba-v0.1", "allenai/OLMoE-1B-7B-0924", *NAMED}  # to whole billions
MLA = body_to_dict(Body((Attention("mla", 1, 1, 1, 1),), 1))["attention"][0]
HEADS: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000}


@pytest.mark.parametrize("name", [*PUBLISHED, *NAMED])
def test_experts_and_body_make_the_published_total(name: str) -> None:
    """Within 1 %, or half a billion where the name is rounded; Nemotron's 30B is 31.6, Qwen's 57B 57.4."""
    published = {**NAMED, **PUBLISHED}[name]
    spare = max(0.011 * published, 2.0 if name in ROUNDED else 0.0)
    assert total_weights(find_model(name)) / 1e9 == pytest.approx(published, abs=spare)


@pytest.mark.parametrize("name", model_names())
def test_every_entry_has_a_body_for_each_of_its_layers(name: str) -> None:
    """Kinds of attention add up to the decoder's layers; Nemotron has layers with nothing but experts."""
    model = find_model(name)
    assert model.body is not None
    layers = sum(each.layers for each in model.body.attention)
    apart = len(model.moe_layer_ids) if model.architecture == "nemotron_h" else 0
    assert layers == model.layers - apart
    assert sum(each.layers for each in model.body.draft_attention) == len(model.draft_layer_ids)


def test_mixtral_by_hand() -> None:
    """A layer: queries and output 4096 x 4096 each, keys and values 4096 x 1024 each."""
    model = find_model("mixtral")
    parts = body_parts(model)
    assert parts["attention"].weights == 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    assert parts["embedding"].weights == parts["head"].weights == 32000 * 4096
    assert parts["router"].weights == 32 * 4096 * 8
    assert model.body is not None
    assert model.body.token_bytes() == 32 * 2 * 8 * 128 * 2


def test_latents_are_whole_on_every_gpu_and_heads_are_divided() -> None:
    """DeepSeek-V3 keeps 512 + 64 elements a layer on each GPU; Qwen's 4 heads go down to one a GPU."""
    deepseek, qwen = find_model("deepseek-v3").body, find_model("qwen3-235b").body
    assert deepseek is not None
    assert qwen is not None
    assert deepseek.token_bytes() == deepseek.token_bytes(gpus=8) == 62 * 576 * 2
    assert [qwen.token_bytes(gpus) / (94 * 2 * 128 * 2) for gpus in (1, 2, 4, 8)] == [4, 2, 1, 1]


def test_attention_weights_shrink_where_heads_are_divided() -> None:
    """To a quarter for Mixtral on 4 GPUs; MLA keeps its low ranks whole, so less than that."""
    mixtral, deepseek = find_model("mixtral"), find_model("deepseek-v3")
    share = [body_parts(mixtral, gpus)["attention"].weights for gpus in (1, 4)]
    assert share[0] == 4 * share[1]
    whole, split = (body_parts(deepseek, gpus)["attention"].weights for gpus in (1, 8))
    assert whole / 8 < split < whole / 4


def test_a_window_stops_growing_and_a_state_does_not_grow() -> None:
    """gpt-oss: 18 layers of 36 look back on 128 tokens; Nemotron's states are there from the first token."""
    oss, nemotron = find_model("gpt-oss-120b").body, find_model("nemotron-3-nano").body
    assert oss is not None
    assert nemotron is not None
    entry = 2 * 8 * 64 * 2
    assert oss.request_bytes(100) == 36 * entry * 100
    assert oss.request_bytes(1000) == 18 * entry * (1000 + 128)
    state = 64 * 64 * 128 * 4 + (64 * 64 + 2 * 8 * 128) * 3 * 2
    assert nemotron.request_bytes(10) == 23 * state + 10 * 6 * 2 * 2 * 128 * 2


def test_sparse_attention_keeps_index_keys_too() -> None:
    """DeepSeek-V3.2: 128 bytes of fp8 and a float32 scale a token and layer, beside the latent."""
    body = find_model("deepseek-v3.2").body
    assert body is not None
    assert body.token_bytes() == 62 * (576 * 2 + 132)


def test_compressed_attention() -> None:
    """DeepSeek-V4-Flash: 584 bytes an entry, one for 4 tokens with an index key or one for 128."""
    body = find_model("deepseek-v4-flash").body
    assert body is not None
    assert body.token_bytes() == pytest.approx(21 * (584 + 132) / 4 + 20 * 584 / 128)
    states = 21 * 8 * 4 * (512 + 128) * 4 + 20 * 128 * 2 * 512 * 4
    assert body.request_bytes(1) == pytest.approx(body.token_bytes() + 44 * 584 + states)


def read(config: dict[str, Any]) -> ModelSpec:
    return spec_from_config(config, "model", "config.json")


def test_a_config_without_the_facts_has_no_body() -> None:
    """Nothing is filled in: such a model is planned by a rule of thumb."""
    assert read(MIXTRAL).body is None
    assert read({**MIXTRAL, **HEADS}).body is not None
    assert read({**MIXTRAL, **HEADS, "hidden_size": 4100}).body is None  # 4100 / 32 is no width of a head


def test_a_fact_that_is_damaged_is_refused() -> None:
    """It is there, so it is not passed over."""
    with pytest.raises(BadInput, match="'vocab_size' is '32k'"):
        read({**MIXTRAL, **HEADS, "vocab_size": "32k"})


@pytest.mark.parametrize(
    ("quantization", "dtypes"),
    [
        (None, ("bf16", "bf16", "bf16")),
        ({"quant_method": "fp8"}, ("fp8", "fp8", "fp8")),
        ({"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "gate"]}, ("fp8", "fp8", "fp8")),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.4.self_attn.o_proj"]},
            ("bf16", "fp8", "fp8"),
        ),
        ({"quant_method": "mxfp4", "modules_to_not_convert": []}, ("bf16", "bf16", "bf16")),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
                "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
            },
            ("bf16", "int4", "bf16"),
        ),
        (
            {
                "quant_algo": "NVFP4",
                "exclude_modules": ["lm_head", "model.layers.0*", "*.mlp.shared_expert.*"],
            },
            ("nvfp4", "nvfp4", "bf16"),
        ),
    ],
)
def test_dtypes_outside_experts(quantization: dict[str, Any] | None, dtypes: tuple[str, str, str]) -> None:
    """What a release leaves out of its quantization is in 16 bits."""
    latent = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    config = {**DEEPSEEK, **HEADS, **latent, "v_head_dim": 128, "quantization_config": quantization}
    body = read(config).body
    assert body is not None
    assert (body.attention_dtype, body.dense_dtype, body.shared_dtype) == dtypes


def test_a_release_may_ask_for_an_fp8_cache() -> None:
    stated = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    body = read({**MIXTRAL, **HEADS, "quantization_config": stated}).body
    assert body is not None
    assert body.kv_dtype == "fp8"
    assert body.token_bytes() == 32 * 2 * 8 * 128


def test_layers_of_a_hybrid() -> None:
    """MEM*E-: two states, one attention, one dense network; MTP layers have attention of their own."""
    facts = {
        **HEADS,
        "head_dim": 128,
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "n_groups": 8,
        "ssm_state_size": 128,
        "conv_kernel": 4,
        "moe_shared_expert_intermediate_size": 5376,
        "intermediate_size": 2688,
    }
    body = read({**NEMOTRON, **facts}).body
    assert body is not None
    assert [(each.kind, each.layers) for each in body.attention] == [("mamba2", 2), ("grouped", 1)]
    assert [(each.kind, each.layers) for each in body.draft_attention] == [("grouped", 2)]
    assert (body.dense_layers, body.dense_width, body.shared_width) == (1, 2688, 5376)


@pytest.mark.parametrize("name", model_names())
def test_plain_values_and_back(name: str) -> None:
    body = find_model(name).body
    assert body is not None
    assert body_from_dict(body_to_dict(body), "here") == body


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"attention": [{"kind": "psychic"}], "vocabulary": 1}, "here"),
        ({"attention": [{**MLA, "kind": "x"}], "vocabulary": 1}, "attention kind 'x' is unknown"),
        ({"attention": [{**MLA, "heads": 0}], "vocabulary": 1}, "heads is 0"),
        ({"attention": 7, "vocabulary": 1}, "'attention' is not a list"),
        ({"attention": [], "vocabulary": 1}, "no attention"),
    ],
)
def test_damaged_plain_values_are_one_line(value: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)) as caught:
        body_from_dict(value, "here")
    assert "\n" not in str(caught.value)


def test_a_model_without_a_body_has_no_parts() -> None:
    model = replace(find_model("mixtral"), body=None)
    assert body_parts(model) == {}
    with pytest.raises(ValueError, match="no body"):
        total_weights(model)
