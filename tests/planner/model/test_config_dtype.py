"""The weight dtype of a config.json is that of its experts, and an unknown one is refused."""

from typing import Any

import pytest

from tests.planner.model.configs import MIXTRAL, read, refusal


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
