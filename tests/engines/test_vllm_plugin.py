"""The plugin package of a plan, installed by pip and loaded by vLLM 0.33.0's own code.

vLLM's balancer state takes the plan's map.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM (the CPU is enough); `vllm_plugin_oracle.py`
is what it runs. No GPU moves weights here.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from planner.engines.common.vllm_plugin import package
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
