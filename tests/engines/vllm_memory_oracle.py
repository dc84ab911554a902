"""Run by an interpreter that has vLLM 0.33.0, without a GPU: bytes that its own code keeps of a request.

stdin: a list of mappings, the facts of one kind of attention and `gpus` that share it. The last line of
stdout is a list with the bytes of one token (of a page, over its tokens) or, for a state, of a request.
"""

import importlib
import json
import math
import sys
from typing import Any

import torch

Shapes: Any = importlib.import_module(
    "vllm.model_executor.layers.mamba.mamba_utils"
).MambaStateShapeCalculator
specs: Any = importlib.import_module("vllm.v1.kv_cache_interface")

PAGE = 16
FLOAT32, BF16 = 4, 2


def state_bytes(case: dict[str, Any]) -> int:
    """Convolution in bf16, recurrence in float32, as releases ask for (mamba_ssm_cache_dtype)."""
    gpus, heads, key, value = case["gpus"], case["heads"], case["key_dim"], case["value_dim"]
    kind, conv = case["kind"], case["conv"]
    if kind == "lightning":
        (state,) = Shapes.linear_attention_state_shape(heads, gpus, key)
        return int(math.prod(state) * FLOAT32)
    if kind == "delta":
        conv_shape, state = Shapes.gated_delta_net_state_shape(
            gpus, case["kv_heads"], heads, key, value, conv
        )
    elif kind == "kda":
        conv_shape, state = Shapes.kda_state_shape(gpus, heads, key, conv_kernel_size=conv)
    elif kind == "mamba":
        conv_shape, state = Shapes.mamba1_state_shape(gpus, heads, case["state_dim"], conv)
    else:
        conv_shape, state = Shapes.mamba2_state_shape(
            gpus, heads * value, case["groups"], heads, value, case["state_dim"], conv
        )
    return int(math.prod(conv_shape) * BF16 + math.prod(state) * FLOAT32)


def token_bytes(case: dict[str, Any]) -> float:
    common: dict[str, Any] = {"block_size": PAGE, "dtype": torch.bfloat16}
    if case["kind"] == "mla":
        spec = specs.MLAAttentionSpec(num_kv_heads=1, head_size=case["kv_rank"] + case["rope_dim"], **common)
    else:
        heads = max(1, case["kv_heads"] // case["gpus"])  # config/model.py: ModelConfig.get_num_kv_heads
        spec = specs.FullAttentionSpec(
            num_kv_heads=heads, head_size=case["key_dim"], head_size_v=case["value_dim"], **common
        )
    return float(spec.page_size_bytes / PAGE)


def main() -> None:
    cases = json.load(sys.stdin)
    answers = [token_bytes(case) if case["tokens"] else state_bytes(case) for case in cases]
    print(json.dumps(answers))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
