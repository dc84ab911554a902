"""A small trace as a load file, and plans that are made from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.model import find_model
from planner.plan import Plan
from planner.planning import PlanRequest, answer

MIXTRAL = find_model("mixtral")
SEQUENCES, TOKENS = 6, 20


def trace_file(
    folder: Path, layers: tuple[int, ...] = MIXTRAL.placed_layer_ids, tokens: int = TOKENS
) -> Path:
    """Sequences of as many tokens, each token with two experts of eight, by a seed."""
    rng = np.random.default_rng(0)
    ids_LTK = rng.permuted(np.tile(np.arange(8), (len(layers), SEQUENCES * tokens, 1)), axis=2)[..., :2]
    path = folder / "trace.npz"
    np.savez(path, topk_ids=ids_LTK, layer_ids=layers, seq_lens=[tokens] * SEQUENCES)
    return path


def plan_of(load_file: Path, **asked: Any) -> Plan:
    request = PlanRequest(
        "mixtral", topology="hgx-h100:2x2", load_files=(load_file,), redundant=4, method="greedy"
    )
    return answer(replace(request, **asked))
