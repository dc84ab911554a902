"""What we emit for TensorRT-LLM, judged by its own sources, as far as they run without a GPU.

Runs where MOEPLAN_TRTLLM_SOURCE names a source tree of a release from 1.0 to 1.2 (the folder that holds
tensorrt_llm/): no wheel can be had from PyPI. `trtllm_options_oracle.py` takes what answers out of it.
"""

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.engines import Emission, find_engine
from planner.engines.trtllm.alltoall import TRANSPORTS
from planner.engines.trtllm.releases import LISTED
from planner.problem import Problem
from tests.planner.engines.examples import TINY, machine, question, random_placement

SOURCE = os.environ.get("MOEPLAN_TRTLLM_SOURCE", "")
pytestmark = pytest.mark.skipif(
    not SOURCE, reason="MOEPLAN_TRTLLM_SOURCE names no source tree of TensorRT-LLM 1.0 to 1.2"
)

ENGINE, ORACLE = find_engine("trtllm"), Path(__file__).with_name("trtllm_options_oracle.py")
CLASSES = {
    "deepseek_v3": "DeepseekV3ForCausalLM", "kimi_k2": "DeepseekV3ForCausalLM",
    "mixtral": "MixtralForCausalLM", "llama4": "Llama4ForConditionalGeneration",
    "qwen2_moe": "Qwen2MoeForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM",
}  # fmt: skip
SHAPES = [
    ((8, 8), "decode"),
    ((8, 8), "prefill"),
    ((4, 4, 4, 4), "decode"),
    ((4, 4, 4, 4), "prefill"),
    ((8,), "decode"),
]
ROLES = ["mixed", "half"]


def ask(options: dict[str, Any], environment: dict[str, str], machines: list[Any]) -> dict[str, Any]:
    asked = {"options": options, "environment": environment, "machines": machines}
    result = subprocess.run(
        [sys.executable, str(ORACLE), SOURCE], input=json.dumps(asked), text=True, check=True,
        capture_output=True, timeout=60, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


@lru_cache(maxsize=1)
def version() -> str:
    """1.0 or 1.2.1: the one of the two known releases that the sources are nearest to."""
    found: str = ask({}, {}, [])["version"]
    return "1.0" if found.startswith(("1.0", "1.1")) else "1.2.1"


def emitted(gpus: tuple[int, ...], phase: str, role: str) -> tuple[Problem, Emission]:
    tokens = 96 if phase == "decode" else 2048
    problem = question(TINY, machine(*gpus), sum(gpus), phase, tokens)
    halves = phase if role == "half" and version() != "1.0" else "mixed"
    return problem, ENGINE.emit(random_placement(TINY, sum(gpus), sum(gpus)), problem, "m", version(), halves)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("gpus", "phase"), SHAPES)
def test_options_and_flags_are_known_and_resolve_to_the_plan(
    gpus: tuple[int, ...], phase: str, role: str
) -> None:
    """Every key is an argument, every section its own class takes, and no graph is larger than a step."""
    problem, emission = emitted(gpus, phase, role)
    options = yaml.safe_load(emission.files["extra_llm_api_options.yaml"])
    found = ask(options, {}, [])
    assert (found.get("error"), found["unknown"]) == (None, [])
    flags = {word for word in emission.commands[0].words if word.startswith("--")}
    assert flags <= set(found["flags"])
    graphs = found["sections"].get("cuda_graph_config")
    running = options.get("max_batch_size", 0)
    assert graphs is None or max(graphs["batch_sizes"]) == graphs["max_batch_size"] == running
    assert max(running, problem.workload.tokens_per_rank) <= options["max_num_tokens"]


@pytest.mark.parametrize(("gpus", "phase"), SHAPES)
def test_the_all_to_all_is_the_one_that_was_priced(gpus: tuple[int, ...], phase: str) -> None:
    """By the engine's own choice under the emitted environment, whether or not it takes NVLink to be up."""
    problem, emission = emitted(gpus, phase, "mixed")
    environment = dict(emission.commands[0].environment)
    machines = [(problem.gpus, TINY.top_k, gpus[0], nvlink) for nvlink in (False, True)]
    names = {"MNNVL": "NVLinkTwoSided"}
    found = {names.get(name, name) for name in ask({}, environment, machines)["methods"]}
    transport = ENGINE.transport(phase, problem.topology, TINY)
    assert {TRANSPORTS[name] for name in found} == {transport}


def test_without_the_environment_it_chooses_another() -> None:
    """On two nodes of eight, where NVLink is up in each: NVLink kernels or nothing, never DeepEP."""
    methods = ask({}, {}, [(16, 8, 8, False), (16, 8, 8, True)])["methods"]
    assert methods[0] == "NotEnabled"
    assert methods[1] in ("NVLinkTwoSided", "MNNVL")


def test_a_section_without_a_value_fails() -> None:
    """`moe_config:` alone is no empty section."""
    assert "error" in ask({"moe_config": None}, {}, [])


def test_the_list_of_models_has_ours() -> None:
    """Each class behind a `model_type` that we emit a map for."""
    assert set(CLASSES) == LISTED
    assert set(CLASSES.values()) <= set(ask({}, {}, [])["models"])
