"""FastDeploy: its table, the program that hands it over, and its launch."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.engines import find_engine
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("fastdeploy")
ERNIE = replace(TINY, architecture="ernie4_5_moe")


def test_table_and_program_are_emitted() -> None:
    """Counts that fit an int32 for each decoder layer, and a program that parses."""
    emission = ENGINE.emit(random_placement(ERNIE, 8, 8), question(ERNIE, machine(8), 8), "m")
    rows = np.array(json.loads(emission.files["expert_stats.json"]))
    assert rows.shape == (6, 64)
    assert rows.min() > 0
    assert rows.max() < 2**31
    ast.parse(emission.files["rearrange.py"])
    assert any("in all 3 MoE layers" in text for text in emission.notes)
    assert any(text.startswith("WARNING: until the counts are handed over") for text in emission.notes)


def test_the_launch_asks_for_the_password_and_writes_none(tmp_path: Path) -> None:
    """The second of two nodes; who may rearrange comes from the environment."""
    emission = ENGINE.emit(random_placement(ERNIE, 16, 16), question(ERNIE, machine(8, 8), 16), "m")
    secrets = {"FD_NODE_IPS": "a,b", "FD_EPLB_USER": "me", "FD_EPLB_PASSWORD": "secret"}
    words = started(emission, tmp_path, "python3", 1, **secrets)
    assert words[:2] == ["-m", "fastdeploy.entrypoints.openai.multi_api_server"]
    config = json.loads(words[words.index("--eplb-config") + 1])
    assert config["redundant_experts_num"] == 16
    assert (config["redundant_expert_api_user"], config["redundant_expert_api_password"]) == ("me", "secret")
    assert words[words.index("--ips") + 1] == "a,b"
    assert words[words.index("--data-parallel-size") + 1] == "16"
    assert len(words[words.index("--ports") + 1].split(",")) == 8
    assert "secret" not in emission.launch


def test_with_groups_of_ranks_the_loss_is_told() -> None:
    """16 ranks are two groups, inside which its replicas stay."""
    emission = ENGINE.emit(random_placement(ERNIE, 16, 16), question(ERNIE, machine(8, 8), 16), "m")
    assert any("in 0 of 3 MoE layers" in text for text in emission.notes)
    emission = ENGINE.emit(random_placement(ERNIE, 16, 0), question(ERNIE, machine(8, 8), 0), "m")
    assert any("in all 3 MoE layers" in text for text in emission.notes)


def test_limits_and_other_models() -> None:
    """One slot a GPU, experts that do not divide over groups of ranks; a model without its balancer."""
    with pytest.raises(BadInput, match="nothing to deal"):
        ENGINE.emit(random_placement(ERNIE, 64, 0), question(ERNIE, machine(*(8,) * 8), 0), "m")
    with pytest.raises(BadInput, match="3 groups of ranks"):
        ENGINE.emit(random_placement(ERNIE, 24, 8), question(ERNIE, machine(8, 8, 8), 8), "m")
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m")
    assert "no expert balancer for deepseek_v3" in emission.ignored
    assert set(emission.files) == {"launch.sh"}
