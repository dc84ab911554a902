"""TensorRT-LLM: its two YAML files and its launch.

Its own code could not be run; the rules re-stated here were read in its sources.
"""

from pathlib import Path

import pytest
import yaml

from planner.base import BadInput
from planner.engines import find_engine
from planner.model import find_model
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("trtllm")


def test_map_names_every_placed_layer_by_its_absolute_id() -> None:
    """Keys 3..60 and the draft layer 61, without which MTP is a KeyError; every row as long as num_slots
    says.
    """
    model = find_model("deepseek-v3")
    placement = random_placement(model, 16, 32)
    emission = ENGINE.emit(placement, question(model, machine(8, 8), 32), "m")
    found = yaml.safe_load(emission.files["moe_load_balancer.yaml"])
    assert set(found) == {"num_slots", "layer_updates_per_iter", "initial_global_assignments"}
    assert found["layer_updates_per_iter"] == 0
    assert list(found["initial_global_assignments"]) == [*range(3, 62)]
    assert {len(row) for row in found["initial_global_assignments"].values()} == {found["num_slots"]} == {288}


def test_options_turn_the_load_balancer_on() -> None:
    """Attention DP and an EP size, without which the map is ignored, and the map's path."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(4, 4), 8), "m")
    options = yaml.safe_load(emission.files["extra_llm_api_options.yaml"])
    assert options == {
        "enable_attention_dp": True, "tensor_parallel_size": 8, "moe_expert_parallel_size": 8,
        "gpus_per_node": 4, "moe_config": {"backend": "WIDEEP", "load_balancer": "./moe_load_balancer.yaml"},
    }  # fmt: skip


def test_launch_on_one_node(tmp_path: Path) -> None:
    """The words that launch.sh really gives trtllm-serve, in the folder that the options are relative to."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "org/m")
    words = started(emission, tmp_path, "trtllm-serve", node_rank=None)
    assert words == ["org/m", "--tp_size", "8", "--ep_size", "8", "--config", "extra_llm_api_options.yaml"]


def test_several_nodes_are_started_by_mpi(tmp_path: Path) -> None:
    """Under MPI the launcher is put before the server; outside it the script says how to start it."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(4, 4), 8), "m")
    words = started(emission, tmp_path, "trtllm-llmapi-launch", node_rank=None, PMIX_RANK="0")
    assert words[:2] == ["trtllm-serve", "m"]
    assert "srun --mpi=pmix -N 2 -n 8 ./launch.sh" in emission.launch


def test_an_architecture_off_the_list_is_launched_without_the_map() -> None:
    """TensorRT-LLM would ignore the map in silence: it gets none, the options name none, and a note."""
    model = find_model("olmoe")
    emission = ENGINE.emit(random_placement(model, 8, 8), question(model, machine(8), 8), "m")
    assert "load_balancer" not in emission.files["extra_llm_api_options.yaml"]
    assert emission.ignored.startswith("TensorRT-LLM 1.2.1 ignores a map for olmoe")
    assert emission.notes[0].startswith(f"WARNING: {emission.ignored}")
    assert sorted(emission.files) == ["extra_llm_api_options.yaml", "launch.sh"]


def test_an_older_release_has_a_shorter_list() -> None:
    """1.0 ignores a map for GPT-OSS, later sources read it."""
    model = find_model("gpt-oss-20b")
    placement, problem = random_placement(model, 8, 8), question(model, machine(8), 8)
    assert "1.0 ignores a map for gpt_oss" in ENGINE.emit(placement, problem, "m", "1.0").ignored
    assert ENGINE.emit(placement, problem, "m").ignored == ""


def test_a_relative_model_path_is_refused() -> None:
    """The launch changes folder, so './model' would be looked for in the plan's."""
    with pytest.raises(BadInput, match="relative"):
        ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "./model")


@pytest.mark.parametrize(
    ("phase", "gpus", "span", "transport"),
    [
        ("decode", (16,), 1, "rank"),
        ("prefill", (4, 4, 4), 3, "rank"),
        ("decode", (8, 8), 1, "slot"),
        ("prefill", (8, 8), 1, "node"),
        ("decode", (8,), 1, "allgather"),
    ],
)
def test_transport(phase: str, gpus: tuple[int, ...], span: int, transport: str) -> None:
    """One message per GPU within an NVLink domain, DeepEP across, and no all-to-all where the EP size is no
    more than top_k (8 here).
    """
    assert ENGINE.transport(phase, machine(*gpus, nodes_per_domain=span), TINY) == transport
