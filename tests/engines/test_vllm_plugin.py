"""The plugin package of a plan, installed by pip and loaded by vLLM 0.33.0's own code.

vLLM's balancer state takes the plan's map.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM (the CPU is enough); `vllm_plugin_oracle.py`
is what it runs. No GPU moves weights here.
"""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner.engines.common.vllm_plugin import MAP_PATH, package
from planner.load import read_load
from tests.engines.matrix import asked
from tests.planner.engines.examples import TINY, pip_install, random_placement

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"
)


def test_vllms_balancer_returns_the_plan(tmp_path: Path) -> None:
    """Main and draft model: the rows that vLLM's state would move to are the plan's, as are its replica
    counts; a foreign model is refused.
    """
    placement = random_placement(TINY, 8, 16)
    for name, text in package(placement, TINY).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    site = pip_install(tmp_path / "vllm_plugin", tmp_path / "site")
    request = json.dumps({"experts": 64, "redundant": 16, "layers": [3, 1], "ranks": 8})
    oracle = Path(__file__).with_name("vllm_plugin_oracle.py")
    run = subprocess.run(
        [PYTHON, str(oracle)],
        input=request,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    answer = json.loads(run.stdout.splitlines()[-1])
    assert answer["policy"] == "PlannedPolicy"
    assert answer["maps"] == [placement.expert_LP[:3].tolist(), placement.expert_LP[3:].tolist()]
    assert answer["replicas"] == [
        placement.replicas_LE(64)[:3].tolist(),
        placement.replicas_LE(64)[3:].tolist(),
    ]
    assert "vLLM asks for a placement of 99 layers" in answer["refused"]


def test_vllm_follows_the_file_on_all_ranks(tmp_path: Path) -> None:
    """Four processes of vLLM's own balancer: a changed map is in force on every rank at the next
    rearrangement and the weights are moved to it; half a file, another shape, or none changes nothing; each
    window it is shown is a load that moeplan reads.
    """
    model = replace(TINY, experts=8, top_k=2, expert_groups=1, groups_per_token=1, draft_layer_ids=())
    first, second, third = (package(random_placement(model, 4, 4, seed), model) for seed in range(3))
    maps = [files[MAP_PATH] for files in (first, second, third)]
    wider = package(random_placement(model, 4, 8), model)[MAP_PATH]
    module = tmp_path / MAP_PATH
    module.parent.mkdir(parents=True)
    for name, text in first.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "plan_map.json").write_text(maps[0])
    (tmp_path / "other_host.json").write_text(maps[2])
    steps = [
        ("first", None, 0), ("unchanged", None, 0), ("second", maps[1], 1), ("half", maps[2][:150], 1),
        ("wider", wider, 1), ("gone", "", 1), ("third", maps[2], 2),
    ]  # fmt: skip
    request = {"package": str(module.parent), "folder": str(tmp_path)}
    answer = asked(PYTHON, "vllm_live_oracle.py", {**request, "steps": [step[:2] for step in steps]})
    assert (answer["first"], set(answer["then"])) == (4, {16})
    for found, (name, _, wanted) in zip(answer["maps"], steps, strict=True):
        rows = json.loads(maps[wanted])["moe"]
        assert found == {"name": name, "rows": rows, "same": True, "follow": True}, name
    load = read_load([tmp_path / "windows"], model)
    assert load.tokens_WLE.shape == (3, 3, 8)
    assert (load.tokens_WLE.sum(axis=2) == load.tokens_WLE[0, 0].sum()).all()
