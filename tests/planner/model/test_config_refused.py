"""A config.json that is not of a model we know gives one line that says why."""

from typing import Any

import pytest

from planner.model.families import FAMILIES
from tests.planner.model.configs import (
    DEEPSEEK,
    GEMMA,
    HUNYUAN,
    JAMBA,
    LLAMA4,
    MIXTRAL,
    NEMOTRON,
    QWEN,
    STEP,
    refusal,
    without,
)


def test_unknown_model_type_is_named_with_the_known_ones() -> None:
    """The reader sees what was found and what could be."""
    message = refusal(MIXTRAL, model_type="megamoe")
    assert "'megamoe'" in message
    assert all(known in message for known in FAMILIES)
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
