"""What the cases are made from: a model, a file, a plan with dense and draft layers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.asked import FOUR_GPUS, V3_LIKE, Made, told

CONFIG = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 1,
    "first_k_dense_replace": 0,
    "num_experts_per_tok": 1,
    "hidden_size": 2048,
    "moe_intermediate_size": 512,
    "n_shared_experts": 1,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def model(tmp_path: Path) -> Made:
    """`model(experts=8)`: the config.json of a DeepSeek-V3 of one layer of experts, changed by keys."""

    def make(experts: int, **keys: Any) -> Path:
        path = tmp_path / f"model{experts}.json"
        path.write_text(json.dumps({**CONFIG, "n_routed_experts": experts, **keys}))
        return path

    return make


@pytest.fixture
def save(tmp_path: Path) -> Made:
    """`save(name, value)`: a text as it is, anything else as JSON.

    JSON here may hold NaN and Infinity as a program writes them.
    """

    def write(name: str, value: Any) -> Path:
        (tmp_path / name).write_text(value if isinstance(value, str) else json.dumps(value))
        return tmp_path / name

    return write


@pytest.fixture
def planned(model: Made, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A plan for 58 MoE layers after three dense ones and a draft layer, each loaded in its own way.

    The load says nothing of the draft layer.
    """
    counts_LE = np.random.default_rng(0).permuted(np.tile(np.arange(1, 17) * 100, (58, 1)), axis=1)
    np.savez(tmp_path / "load.npz", counts=counts_LE)
    question = f"--model {model(16, **V3_LIKE)} --load {tmp_path}/load.npz --redundant 4 {FOUR_GPUS}"
    plan = tmp_path / "plan.json"
    return plan, told(f"solve {question} --engine sglang --method greedy -o {plan}")
