"""RTP-LLM 0.2.0's own reader takes our map. The files are named in engine_sources."""

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from planner.engines import find_engine
from planner.model import find_model
from tests.engines.engine_sources import function_of, needs, source
from tests.planner.engines.examples import TINY, machine, question, random_placement

pytestmark = needs("RTP-LLM", "rtp_llm/load_config.py", "rtp_llm/loader.py")


def check_with_info(held: bool, text: str) -> None:
    if not held:
        raise RuntimeError(text)


def reader(path: str) -> Any:
    names = {
        "json": json, "logging": logging, "check_with_info": check_with_info,
        "fetch_remote_file_to_local": str,
        "StaticConfig": SimpleNamespace(load_config=SimpleNamespace(phy2log_path=path)),
        "List": list, "Optional": Any,
    }  # fmt: skip
    return function_of(source("rtp_llm/load_config.py"), "create_redundant_expert", names)


def test_the_engine_reads_the_map_and_each_rank_its_slots(tmp_path: Path) -> None:
    """DeepSeek-V3, two nodes: rows by absolute layer id, each rank its GPU's slots, both tables."""
    model = find_model("deepseek-v3")
    placement = random_placement(model, 16, 32)
    path = tmp_path / "phy2log.json"
    path.write_text(
        find_engine("rtp_llm").emit(placement, question(model, machine(8, 8), 32), "m").files[path.name]
    )
    phy2log = reader(str(path))(model.layers, model.experts, 288, 16, 2)
    assert phy2log[3:] == placement.expert_LP[:58].tolist()
    chosen = function_of(source("rtp_llm/load_config.py"), "get_selected_experts", {})
    for rank in (0, 9, 15):
        config = SimpleNamespace(phy2log=phy2log, ep_size=16, ep_rank=rank)
        assert chosen(config, 40, 256) == placement.expert_LP[37].reshape(16, 18)[rank].tolist()
    weights: list[dict[str, Any]] = [{} for _ in range(model.layers)]
    keys = SimpleNamespace(logic_expert_cnt="count", log2phy="slots")
    tables = function_of(
        source("rtp_llm/loader.py"), "_init_eplb_weight", {"torch": torch, "W": keys, "ModelWeights": Any}
    )
    owner = SimpleNamespace(
        _load_config=SimpleNamespace(
            expert_num=256, phy_exp_num=288, num_layers=model.layers, phy2log=phy2log
        ),
        _weights_info=SimpleNamespace(config=SimpleNamespace(enable_eplb=True)),
    )
    tables(owner, SimpleNamespace(weights=weights), "cpu")
    for expert in range(256):
        slots = np.flatnonzero(placement.expert_LP[0] == expert)
        assert weights[3]["slots"][expert, : len(slots)].tolist() == slots.tolist()
        assert int(weights[3]["count"][expert]) == len(slots)


def test_rows_of_another_model_are_refused_and_a_short_later_row_is_not(tmp_path: Path) -> None:
    """What it checks: the number of rows and the first one's length. So we check the rest."""
    model = find_model("deepseek-v3")
    path = tmp_path / "phy2log.json"
    path.write_text(json.dumps([[0] * 288] * 60))
    with pytest.raises(RuntimeError, match="60 != layer_num 61"):
        reader(str(path))(model.layers, 256, 288, 16, 2)
    path.write_text(json.dumps([[0] * 288] + [[0]] * 60))
    assert len(reader(str(path))(model.layers, 256, 288, 16, 2)[1]) == 1


@pytest.mark.parametrize("redundant", [0, 4, 8, 24, 64])
def test_its_own_map_is_the_one_that_we_say(redundant: int) -> None:
    """`default_placement`, on one node of 8, or 4 where replicas do not divide over 8."""
    gpus = 8 if redundant % 8 == 0 else 4
    made = reader("")(6, TINY.experts, TINY.experts + redundant, gpus, 1)
    assert made[0] == find_engine("rtp_llm").default_placement(TINY, gpus, redundant).expert_LP[0].tolist()
