"""vllm-plugin-das's own reader takes our map. The files are named in engine_sources."""

from pathlib import Path

import numpy as np
import pytest
import torch

from planner.engines import find_engine
from planner.model import find_model
from tests.engines.engine_sources import loaded, needs, source
from tests.planner.engines.examples import machine, question, random_placement

pytestmark = needs("vllm-plugin-das", "hygon/static_eplb.py", "hygon/eplb_dispatch.py")


def test_the_engine_reads_both_maps(tmp_path: Path) -> None:
    """DeepSeek-V3 and its draft model, row for row; another model's shape is refused."""
    engine = loaded("hygon_static", source("hygon/static_eplb.py"))
    model = find_model("deepseek-v3")
    placement = random_placement(model, 16, 32)
    path = tmp_path / "offline_eplb.json"
    path.write_text(
        find_engine("hygon").emit(placement, question(model, machine(8, 8), 32), "m").files[path.name]
    )
    sizes = {"num_logical_experts": 256, "num_redundant_experts": 32}
    main = engine.load_static_eplb_plan(
        path, model_key="DeepseekV3ForCausalLM", expected_shape=(58, 288), **sizes
    )
    draft = engine.load_static_eplb_plan(path, model_key="DeepSeekMTP", expected_shape=(1, 288), **sizes)
    assert main.physical_to_logical_map.tolist() == placement.expert_LP[:58].tolist()
    assert draft.physical_to_logical_map.tolist() == placement.expert_LP[58:].tolist()
    with pytest.raises(ValueError, match="shape"):
        engine.load_static_eplb_plan(path, model_key="DeepSeekMTP", expected_shape=(58, 288), **sizes)
    with pytest.raises(ValueError, match="does not contain key"):
        engine.load_static_eplb_plan(path, model_key="MixtralForCausalLM", expected_shape=(58, 288), **sizes)


def test_replicas_share_evenly_over_a_batch(tmp_path: Path) -> None:
    """VLLM's hash of the row picks a column of the engine's own order: 1 / n from each rank, within 1 %."""
    order = loaded("hygon_dispatch", source("hygon/eplb_dispatch.py")).build_locality_fair_replica_order
    del tmp_path
    model = find_model("deepseek-v3")
    row = random_placement(model, 16, 32, hot=8).expert_LP[0]
    slots_of = [np.flatnonzero(row == expert) for expert in range(256)]
    most = max(map(len, slots_of))
    table = torch.full((1, 256, most), -1, dtype=torch.int64)
    for expert, slots in enumerate(slots_of):
        table[0, expert, : len(slots)] = torch.from_numpy(slots)
    expert = max(range(256), key=lambda expert: len(slots_of[expert]))
    hashed = (np.arange(4096, dtype=np.uint64) * np.uint64(2654435769)) & np.uint64(0xFFFFFFFF)
    count = len(slots_of[expert])
    firsts = []
    for rank in range(16):
        ordered = order(table, ep_rank=rank, ep_size=16, num_nodes=2, num_physical_experts=288)[0, expert]
        firsts.append(int(ordered[0]))
        picked = ordered.numpy()[(hashed % np.uint64(count)).astype(int)]
        share = np.unique(picked, return_counts=True)[1] / 4096
        assert len(share) == count
        assert np.allclose(share, 1 / count, rtol=0.01)
    assert len(set(firsts)) == count  # one token a rank: still every replica has a rank
