"""TokenSpeed's own code takes our map, and picks replicas as we say; its files: engine_sources."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from planner.engines import find_engine
from planner.replica.registry import find_rule
from planner.replica.situation import Situation
from tests.engines.engine_sources import loaded, needs, source, stub
from tests.planner.engines.examples import TINY, machine, question, random_placement

pytestmark = needs("TokenSpeed", "tokenspeed/tokenspeed", "tokenspeed/dispatch.py")
LONGCAT = replace(
    TINY,
    architecture="longcat_flash",
    moe_layer_ids=tuple(range(6)),
    draft_layer_ids=(),
    top_k=12,
    hidden=6144,
)


def location(redundant: int, gpus: int, path: Path) -> Any:
    """expert_location.py, its heavy neighbours replaced: a model of LongCat's geometry, flags as emitted."""
    root = source("tokenspeed/tokenspeed")
    for name in [name for name in sys.modules if name.split(".")[0] == "tokenspeed"]:
        del sys.modules[name]
    for package in ("tokenspeed", "tokenspeed.runtime", "tokenspeed.runtime.moe"):
        stub(package).__path__ = [str(root.parent / package.replace(".", "/"))]
    geometry = SimpleNamespace(
        num_layers=LONGCAT.layers, num_logical_experts=LONGCAT.experts, num_groups=None
    )
    longcat = type(
        "Longcat", (), {"get_model_config_for_expert_location": classmethod(lambda c, h: geometry)}
    )
    stub("tokenspeed.runtime.configs.model_config", ModelConfig=object)
    stub("tokenspeed.runtime.distributed.mapping", Mapping=object)
    stub("tokenspeed.runtime.model_loader", get_model_architecture=lambda config: (longcat, "Longcat"))
    stub("tokenspeed.runtime.moe.expert_load_rows", ExpertLoadRowMask=object)
    stub(
        "tokenspeed.runtime.utils.server_args",
        ServerArgs=object,
        expert_placement_requested=lambda args: True,
    )
    module = loaded("tokenspeed.runtime.moe.expert_location", root / "runtime/moe/expert_location.py")
    moe = SimpleNamespace(ep_size=gpus, ep_rank=0, ep_group=list(range(gpus)))
    args = SimpleNamespace(
        init_expert_location=str(path), ep_num_redundant_experts=redundant, device="cpu",
        eplb_algorithm="auto",
        mapping=SimpleNamespace(moe=moe, nprocs_per_node=8, nnodes=gpus // 8),
    )  # fmt: skip
    return lambda: module.compute_initial_expert_location_metadata(args, SimpleNamespace(hf_config=None))


def emitted(path: Path, redundant: int = 16, gpus: int = 16) -> Any:
    placement = random_placement(LONGCAT, gpus, redundant)
    problem = question(LONGCAT, machine(*(8,) * (gpus // 8)), redundant, "prefill")
    path.write_text(find_engine("tokenspeed").emit(placement, problem, "m").files["expert_location.json"])
    return placement


def test_the_engine_reads_the_map(tmp_path: Path) -> None:
    """Every row; rank r holds the plan's slots of GPU r."""
    placement = emitted(tmp_path / "map.json")
    made = location(16, 16, tmp_path / "map.json")()
    assert made.physical_to_logical_map_cpu.tolist() == placement.expert_LP.tolist()
    held = made.local_slot_logical_experts(2, 5)
    assert held == placement.expert_LP[2].reshape(16, -1)[5].tolist()


@pytest.mark.parametrize(("redundant", "match"), [(0, "has shape"), (32, "has shape")])
def test_another_number_of_slots_is_refused(redundant: int, match: str, tmp_path: Path) -> None:
    """Unlike SGLang it compares the map's shape with its flags."""
    emitted(tmp_path / "map.json")
    with pytest.raises(ValueError, match=match):
        location(redundant, 16, tmp_path / "map.json")()


def test_the_default_map_is_cyclic() -> None:
    made = location(16, 16, Path("trivial"))()
    assert (
        made.physical_to_logical_map_cpu[0].tolist()
        == find_engine("tokenspeed").default_placement(LONGCAT, 16, 16).expert_LP[0].tolist()
    )


def test_replicas_share_as_by_the_row(tmp_path: Path) -> None:
    """Its own dispatch of a whole batch, experts drawn alike in each place of the top k: within 2 % of
    `row-index`.
    """
    placement = emitted(tmp_path / "map.json")
    made = location(16, 16, tmp_path / "map.json")()
    dispatch = loaded("tokenspeed_dispatch", source("tokenspeed/dispatch.py"))
    table = dispatch.ExpertDispatch(
        made.logical_to_all_physical_map[1], made.logical_to_all_physical_map_num_valid[1]
    )
    draw = np.random.default_rng(0)
    ids = torch.from_numpy(np.argsort(draw.random((1 << 15, LONGCAT.experts)), axis=1)[:, :12].copy())
    slots = dispatch.dispatch_topk_ids(ids, table).numpy()
    assert (placement.expert_LP[1][slots] == ids.numpy()).all()
    used_P = np.bincount(slots.ravel(), minlength=placement.slots)
    used_E = np.bincount(ids.numpy().ravel(), minlength=LONGCAT.experts)
    situation = Situation(LONGCAT, np.repeat([0, 1], 8), (1 << 15) // 16)
    share_SP = list(find_rule("row-index")(placement, situation))[1]
    assert np.allclose(used_P / used_E[placement.expert_LP[1]], share_SP[0], atol=0.02)
