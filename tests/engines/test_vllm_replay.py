"""A trace's rows through vLLM 0.33.0's own loader, routers and runners, on a CPU.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM; `vllm_replay_oracle.py` is what it runs. No
GPU serves here.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.engines import replay_of
from planner.engines.common.vllm_replay import STRATEGY, package
from planner.load import LoadProfile, Trace
from tests.planner.engines.examples import TINY, pip_install

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"
)
TOKENS = 40
LAYERS = TINY.placed_layer_ids  # of main and draft model
STEPS = (7, 16, 1, 30)  # longer together than the trace


def load() -> LoadProfile:
    """A trace in which no two layers and no two tokens are alike."""
    draw = np.random.default_rng(3)
    rows = [draw.permutation(TINY.experts)[: TINY.top_k] for _ in range(len(LAYERS) * TOKENS)]
    trace = Trace(np.array(rows, dtype=np.int32).reshape(len(LAYERS), TOKENS, -1), (TOKENS,))
    counts = np.array([np.bincount(row.ravel(), minlength=TINY.experts) for row in trace.experts_LTK])
    return LoadProfile(counts[None], LAYERS, "made for tests", trace=trace)


def asked(folder: Path, files: dict[str, str], request: dict[str, Any]) -> dict[str, Any]:
    """What vLLM answers with the package installed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    site = pip_install(folder / "vllm_replay", folder / "site")
    name, value = STRATEGY
    run = subprocess.run(
        [PYTHON, str(Path(__file__).with_name("vllm_replay_oracle.py"))],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, "PYTHONPATH": str(site), name: value},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


def test_every_layer_and_rank_is_handed_its_own_rows(tmp_path: Path) -> None:
    """Each layer its own row of each token, one after the other and over the end; ranks with tokens of their
    own start evenly apart, those that share or gather them alike; logits change nothing.
    """
    ranks = [
        {"dp": [0, 4], "ep": [0, 4], "sequence": False, "gathered": False},
        {"dp": [3, 4], "ep": [3, 4], "sequence": False, "gathered": False},
        {"dp": [1, 2], "ep": [3, 4], "sequence": False, "gathered": False},  # its two GPUs share tokens
        {"dp": [1, 2], "ep": [3, 4], "sequence": True, "gathered": False},  # and split them here
        {"dp": [3, 4], "ep": [3, 4], "sequence": False, "gathered": True},
    ]
    first = [0, 30, 20, 30, 0]
    request = {
        "layers": LAYERS, "experts": TINY.experts, "top_k": TINY.top_k, "ranks": ranks, "steps": STEPS,
        "stray": 7,
    }  # fmt: skip
    profile = load()
    answer = asked(tmp_path, package(replay_of(profile, TINY)), request)
    assert profile.trace is not None
    for start, steps in zip(first, answer["ids"], strict=True):
        done = 0
        for tokens, by_layer in zip(STEPS, steps, strict=True):
            rows = (start + done + np.arange(tokens)) % TOKENS
            assert (np.array(by_layer) == profile.trace.experts_LTK[:, rows]).all()
            done += tokens
    assert answer["weights"] == [1.0]
    assert answer["dtypes"] == ["torch.float32", "torch.int32"]
    assert answer["methods"] == ["Simulated"]
    assert "has no rows of layer 7" in answer["refused"]
    assert "was not made by vLLM's MoERunner" in answer["unbound"]
