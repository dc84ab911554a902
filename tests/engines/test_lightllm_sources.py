"""LightLLM's own reader and router take our list. The files are named in engine_sources."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from planner.engines import find_engine
from planner.engines.lightllm import served
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from tests.engines.engine_sources import function_of, loaded, needs, source
from tests.planner.engines.examples import TINY, machine, question, random_placement

pytestmark = needs(
    "LightLLM",
    "lightllm/envs_utils.py",
    "lightllm/fused_moe_weight.py",
    "lightllm/redundancy_topk_ids_repair.py",
)

GPUS, REDUNDANT = 8, 24


def emitted(tmp_path: Path) -> tuple[Problem, Placement, Path]:
    """A question, a placement, and the path of the list."""
    counts = np.random.default_rng(2).integers(1, 999, (1, len(TINY.placed_layer_ids), TINY.experts))
    problem = question(TINY, machine(GPUS), REDUNDANT)
    problem = replace(problem, load=LoadProfile(counts, TINY.placed_layer_ids, "made for tests"))
    placement = random_placement(TINY, GPUS, REDUNDANT)
    path = tmp_path / "redundancy_experts.json"
    path.write_text(find_engine("lightllm").emit(placement, problem, "m").files[path.name])
    return problem, placement, path


def lists(path: Path) -> tuple[dict[int, list[int]], int]:
    file = source("lightllm/envs_utils.py")
    names = {
        "json": json,
        "get_env_start_args": lambda: SimpleNamespace(ep_redundancy_expert_config_path=str(path)),
    }
    ids, number = (function_of(file, f"get_redundancy_expert_{what}", names) for what in ("ids", "num"))
    return {layer: ids(layer) for layer in range(9)}, number()


def test_the_engine_reads_a_list_for_every_layer(tmp_path: Path) -> None:
    """As long as it says everywhere, by absolute layer id; layers without a list have one too."""
    problem, placement, path = emitted(tmp_path)
    found, number = lists(path)
    told = served(placement, problem)
    assert number == REDUNDANT // GPUS
    assert {len(ids) for ids in found.values()} == {number}
    for row, layer in enumerate(TINY.moe_layer_ids):
        assert told.expert_LP[row].reshape(GPUS, -1)[:, -number:].tolist() == [found[layer]] * GPUS


def test_every_rank_loads_the_slots_that_we_say(tmp_path: Path) -> None:
    """FusedMoeWeight's own arithmetic of local experts."""
    problem, placement, path = emitted(tmp_path)
    found, number = lists(path)
    init = function_of(
        source("lightllm/fused_moe_weight.py"),
        "_init_parallel_params",
        {"get_row_slice_mixin": lambda *a, **k: None, "get_col_slice_mixin": lambda *a, **k: None,
         "logger": SimpleNamespace(debug=lambda *a: None)},
    )  # fmt: skip
    told = served(placement, problem).expert_LP[0].reshape(GPUS, -1)
    for rank in range(GPUS):
        weight = SimpleNamespace(
            enable_ep_moe=True, num_fused_shared_experts=0, global_rank_=rank, global_world_size=GPUS,
            layer_num_=3, n_routed_experts=TINY.experts, redundancy_expert_num=number,
            redundancy_expert_ids=found[3],
            moe_intermediate_size=256, quant_method=SimpleNamespace(method_name="none"),
        )  # fmt: skip
        init(weight)
        assert weight.local_expert_ids == told[rank].tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Triton's interpreter, by NumPy 2.2
def test_a_token_of_a_listed_expert_stays_on_its_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The router's own kernel, interpreted on a CPU, against the slots that we say."""
    pytest.importorskip("triton", reason="Triton, which interprets LightLLM's kernel, is not installed")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    repair = loaded(
        "lightllm_repair", source("lightllm/redundancy_topk_ids_repair.py")
    ).redundancy_topk_ids_repair
    problem, placement, path = emitted(tmp_path)
    found, _ = lists(path)
    told_P = served(placement, problem).expert_LP[0]
    for rank in (0, 3, 7):
        ids = torch.arange(TINY.experts, dtype=torch.int64).reshape(-1, 1)
        repair(ids, torch.tensor(found[3]), TINY.experts // GPUS, rank, None, False)
        slots = ids[:, 0].numpy()
        assert told_P[slots].tolist() == list(range(TINY.experts))
        own = slots // (len(told_P) // GPUS)
        assert {int(own[expert]) for expert in found[3]} == {rank}
        homes = [expert // (TINY.experts // GPUS) for expert in range(TINY.experts)]
        assert all(own[expert] == homes[expert] for expert in range(TINY.experts) if expert not in found[3])
