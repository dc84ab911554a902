"""Bytes that a request keeps, against SGLang 0.5.23's and vLLM 0.33.0's own formulas.

Run where MOEPLAN_SGLANG_PYTHON and MOEPLAN_VLLM_PYTHON name interpreters that have them (the CPU is enough).
"""

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from planner.model import Attention, find_model, model_names, spec_from_config
from tests.places import ROOT

SGLANG = os.environ.get("MOEPLAN_SGLANG_PYTHON", "")
VLLM = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
TOKENS = ("grouped", "mla")  # kinds that keep tokens and no state
STATES = ("delta", "kda", "lightning", "mamba", "mamba2")
GPUS = (1, 2, 8)

COMMON = {
    "torch_dtype": "bfloat16",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
}
LATENT = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "vocab_size": 129280,
    "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 1, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, **COMMON,
}  # fmt: skip
SPARSE = {
    **LATENT, "architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32",
    "index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048,
}  # fmt: skip
QWEN = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "vocab_size": 151936,
    "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 94,
    "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], **COMMON,
}  # fmt: skip


def asked(python: str, program: str, cases: list[Any]) -> list[float]:
    """The last line of what the program answers."""
    done = subprocess.run(
        [python, str(ROOT / "tests/engines" / program)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def kinds(names: tuple[str, ...]) -> list[Attention]:
    """Every kind of attention of the catalogue, once."""
    bodies = [body for name in model_names() if (body := find_model(name).body) is not None]
    found = dict.fromkeys(each for body in bodies for each in body.attention)
    return [each for each in found if each.kind in names]


def divides(each: Attention, gpus: int) -> bool:
    """Engines divide heads evenly, and copy those of keys only where GPUs divide by them."""
    fewer = each.kv_heads and gpus % each.kv_heads == 0
    groups = each.kind != "mamba2" or each.groups % gpus == 0
    return each.heads % gpus == 0 and groups and (each.kv_heads % gpus == 0 or bool(fewer))


@pytest.mark.skipif(not VLLM, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0")
@pytest.mark.parametrize("tokens", [True, False])
def test_vllm_keeps_as_much_of_every_kind(tokens: bool) -> None:
    """Pages of tokens, and states of requests, of the whole catalogue on 1, 2 and 8 GPUs."""
    pairs = [
        (each, gpus)
        for each in kinds(TOKENS if tokens else STATES)
        for gpus in GPUS
        if divides(each, gpus) and (tokens or each.kind != "delta" or each.kv_heads % gpus == 0)
    ]
    cases = [{**asdict(each), "gpus": gpus, "tokens": tokens} for each, gpus in pairs]
    assert len(cases) > 10
    answers = asked(VLLM, "vllm_memory_oracle.py", cases)
    for (each, gpus), answer in zip(pairs, answers, strict=True):
        ours = each.entry_bytes(2.0, gpus) if tokens else each.fixed_bytes(0, 2.0, gpus)
        assert ours == answer, (each, gpus)


@pytest.mark.skipif(not SGLANG, reason="MOEPLAN_SGLANG_PYTHON names no interpreter with SGLang 0.5.23")
def test_sglang_counts_as_many_bytes_a_token(tmp_path: Path) -> None:
    """MLA, MLA with a sparse index and grouped queries, alone and shared by 2 and 8 GPUs."""
    cases, ours = [], []
    for number, config in enumerate((LATENT, SPARSE, QWEN)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        body = spec_from_config(config, "model", "config.json").body
        assert body is not None
        for gpus in GPUS:
            cases.append([str(folder), gpus])
            ours.append(body.token_bytes(gpus))
    assert asked(SGLANG, "sglang_memory_oracle.py", cases) == ours
