"""LMDeploy: its table of counts and its launch. tests/engines holds both against its own balancer."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.engines.lmdeploy import served
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("lmdeploy")
FP8 = replace(TINY, weight_dtype="fp8")


def test_the_table_builds_the_plan() -> None:
    """A row for each decoder layer; what is served holds the plan's experts on each GPU."""
    placement, problem = random_placement(FP8, 8, 8), question(FP8, machine(8), 8)
    emission = ENGINE.emit(placement, problem, "m")
    rows = json.loads(emission.files["experts_statistic.json"])
    assert np.array(rows).shape == (6, 64)
    made = served(placement, problem)
    assert (
        np.sort(made.expert_LP.reshape(4, 8, -1), axis=2).tolist()
        == np.sort(placement.expert_LP.reshape(4, 8, -1), axis=2).tolist()
    )
    assert any("in all 3 MoE layers" in text for text in emission.notes)
    assert not emission.ignored


def test_the_launch_makes_one_group_of_all_ranks(tmp_path: Path) -> None:
    """The second of two nodes: counts, redundant experts and groups by environment, the rest by flags."""
    emission = ENGINE.emit(random_placement(FP8, 8, 8), question(FP8, machine(4, 4), 8), "m")
    words = started(emission, tmp_path, "lmdeploy", 1)
    assert words[:3] == ["serve", "api_server", "m"]
    flags = dict(zip(words[3:-1:2], words[4::2], strict=True))
    assert flags == {
        "--server-name": "0.0.0.0",
        "--max-batch-size": "128",
        "--max-prefill-token-num": "4096",
        "--backend": "pytorch",
        "--tp": "1",
        "--dp": "8",
        "--ep": "8",
        "--nnodes": "2",
        "--node-rank": "1",
    }
    assert words[-1] == "--enable-eplb"
    settings = dict(emission.commands[1].environment)
    assert settings["LMDEPLOY_EPLB_NUM_GROUPS"] == "1"
    assert settings["LMDEPLOY_EPLB_RANKS_PER_NODE"] == "8"
    assert settings["LMDEPLOY_EPLB_NUM_REDUNDANT_EXPERTS"] == "8"
    assert settings["LMDEPLOY_EPLB_EXPERTS_STATISTIC_FILE"].endswith("/experts_statistic.json")


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (TINY, "balances fp8 experts only"),
        (replace(FP8, architecture="mixtral"), "no expert balancer for mixtral"),
    ],
)
def test_what_its_balancer_does_not_serve_gets_flags_alone(model: object, why: str) -> None:
    """Weights of another type raise NotImplementedError in LMDeploy; other classes skip its balancer."""
    asked = question(model, machine(8), 8)  # type: ignore[arg-type]
    emission = ENGINE.emit(random_placement(asked.model, 8, 8), asked, "m")
    assert why in emission.ignored
    assert set(emission.files) == {"launch.sh"}
    assert "EPLB" not in emission.launch


def test_one_gpu_is_refused() -> None:
    """LMDeploy exits there: eplb requires ep > 1."""
    with pytest.raises(BadInput, match="more than 1 GPU"):
        ENGINE.emit(random_placement(FP8, 1, 0), question(FP8, machine(1), 0), "m")
