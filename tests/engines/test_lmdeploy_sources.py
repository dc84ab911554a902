"""LMDeploy's own balancer, given our table, builds the plan. The files are named in engine_sources."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from planner.engines import find_engine
from planner.engines.common import count_table
from planner.engines.lmdeploy import served
from planner.load import LoadProfile
from planner.model import find_model
from tests.engines.engine_sources import held, loaded, needs, source, stub
from tests.planner.engines.examples import TINY, machine, question, random_placement

pytestmark = needs("LMDeploy", "lmdeploy/eplb.py")


def balancer(path: Path, redundant: int, gpus: int) -> Any:
    stub(
        "lmdeploy.pytorch.envs",
        eplb_experts_statistic_file=str(path),
        eplb_num_groups=1,
        eplb_num_redundant_experts=redundant,
        eplb_ranks_per_node=gpus,
    )
    return loaded("lmdeploy_eplb", source("lmdeploy/eplb.py"))


CASES = [
    ("deepseek-v3", (8,), 0, None),
    ("deepseek-v3", (8,), 32, 8),
    ("deepseek-v3", (8, 8), 32, 32),
    ("deepseek-v3", (8,) * 4, 32, 16),
    ("deepseek-v3", (8,) * 8, 64, 24),
    ("qwen3-235b-a22b", (8,), 16, 4),
    ("qwen3-235b-a22b", (8, 8), 32, 32),
]


@pytest.mark.parametrize(("name", "nodes", "redundant", "hot"), CASES)
def test_the_engine_builds_the_plan(
    name: str, nodes: tuple[int, ...], redundant: int, hot: int | None, tmp_path: Path
) -> None:
    """Every MoE layer, expert for expert on each GPU; and what we say it makes is what it makes."""
    model, gpus = replace(find_model(name), weight_dtype="fp8"), sum(nodes)
    placement = random_placement(model, gpus, redundant, hot=hot)
    problem = question(model, machine(*nodes), redundant)
    path = tmp_path / "experts_statistic.json"
    path.write_text(find_engine("lmdeploy").emit(placement, problem, "m").files[path.name])
    engine = balancer(path, redundant, gpus)
    made = engine.EPLBMetadata.init(gpus, model.experts, model.layers)
    told = served(placement, problem)
    rows = [
        (made.physical_to_logical_map[layer], wanted, said)
        for layer, wanted, said in zip(model.moe_layer_ids, placement.expert_LP, told.expert_LP, strict=False)
    ]
    exact = sum(held(mine, gpus) == held(wanted, gpus) for mine, wanted, _ in rows)
    assert exact == len(rows)
    assert all(held(mine, gpus) == held(said, gpus) for mine, _, said in rows)


@pytest.mark.parametrize(
    ("experts", "redundant", "gpus"), [(8, 8, 8), (16, 16, 8), (64, 8, 36), (256, 32, 144)]
)
def test_where_no_counts_are_found_the_engine_makes_what_we_say(
    experts: int, redundant: int, gpus: int, tmp_path: Path
) -> None:
    """Too few slots a GPU to steer: our copy of the balancer and its own agree on the load itself."""
    draw = np.random.default_rng(experts)
    model = replace(TINY, experts=experts, weight_dtype="fp8", top_k=2)
    counts = (draw.zipf(1.4, (1, len(model.placed_layer_ids), experts)) % 1000).astype(np.int64)
    problem = question(model, machine(*(gpus // 4,) * 4), redundant)
    problem = replace(problem, load=LoadProfile(counts, model.placed_layer_ids, "made for tests"))
    placement = random_placement(model, gpus, redundant)
    table = count_table.count_table(placement, problem)
    assert table.other
    path = tmp_path / "experts_statistic.json"
    path.write_text(json.dumps(table.decoder_rows(model.layers)))
    engine = balancer(path, redundant, gpus)
    made = engine.EPLBMetadata.init(gpus, experts, model.layers)
    for row, layer in enumerate(model.moe_layer_ids):
        assert held(made.physical_to_logical_map[layer], gpus) == held(table.served.expert_LP[row], gpus)


def test_every_replica_is_drawn_alike(tmp_path: Path) -> None:
    """`even`: the engine's own draw, 200,000 times, for an expert with 4 replicas."""
    model = replace(TINY, weight_dtype="fp8")
    placement = random_placement(model, 8, 24, hot=8)
    problem = question(model, machine(8), 24)
    path = tmp_path / "experts_statistic.json"
    path.write_text(find_engine("lmdeploy").emit(placement, problem, "m").files[path.name])
    engine = balancer(path, 24, 8)
    engine._global_eplb_metadata = engine.EPLBMetadata.init(8, model.experts, model.layers)
    info = engine.EPLBManager.get_dispatch_info(3, 4)
    counts_E = np.bincount(placement.expert_LP[1])
    expert = int(counts_E.argmax())
    torch.manual_seed(0)
    slots = engine.EPLBManager.topk_ids_logical_to_physical(torch.full((200_000, 1), expert), info)
    share = np.unique(slots.numpy(), return_counts=True)[1] / 200_000
    assert len(share) == counts_E[expert] > 1
    assert np.allclose(share, 1 / len(share), atol=0.005)
