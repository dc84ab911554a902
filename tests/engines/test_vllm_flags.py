"""The flags we emit for vLLM, judged by vLLM 0.33.0's own parser and parallel configuration.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM (the CPU is enough); `vllm_oracle.py` is
what it runs.
"""

import os
from pathlib import Path

import pytest

from planner.engines import find_engine
from tests.engines.matrix import asked
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"
)
BACKENDS = {"decode": "deepep_low_latency", "prefill": "deepep_high_throughput"}


def test_vllm_accepts_every_node_of_every_launch(tmp_path: Path) -> None:
    """One and two nodes, with and without replicas, both phases: the flags mean the plan's EP size, replicas
    and backend. A wrong field is refused.
    """
    expected, cases = [], []
    for sizes, redundant, phase in [((8,), 0, "decode"), ((8,), 8, "prefill"), ((8, 8), 32, "decode")]:
        placement = random_placement(TINY, sum(sizes), redundant)
        problem = question(TINY, machine(*sizes), redundant, phase)
        emission = find_engine("vllm").emit(placement, problem, "m")
        for node in range(len(sizes)):
            cases.append(started(emission, tmp_path, "vllm", node_rank=node)[2:])
            expected.append((sum(sizes), redundant, BACKENDS[phase]))
    cases.append([word.replace("num_redundant_experts", "redundant") for word in cases[-1]])
    *answers, refused = asked(PYTHON, "vllm_oracle.py", cases)
    for answer, (gpus, redundant, backend) in zip(answers, expected, strict=True):
        assert answer == {
            "config": {
                "enable_expert_parallel": True,
                "enable_eplb": True,
                "all2all_backend": backend,
                "world_size_across_dp": gpus,
                "num_redundant_experts": redundant,
                "use_async": False,
            }
        }
    assert "error" in refused
