"""vLLM: flags only, and a word that the placement is not used."""

import json
from pathlib import Path

import pytest

from planner.engines import find_engine
from planner.model import find_model
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("vllm")


def test_only_flags_are_emitted_and_the_note_says_so() -> None:
    """No file pretends that vLLM 0.33.0 has a field for a map."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m")
    assert set(emission.files) == {"launch.sh"}
    assert emission.ignored
    said = "WARNING: vLLM 0.33.0 does not read a map: the plan's placement is not used"
    assert emission.notes[0].startswith(said)
    assert ENGINE.read_map({"physical_to_logical_map": [[0]]}) is None


@pytest.mark.parametrize(
    ("node", "extra"),
    [
        (0, []),
        (1, ["--data-parallel-start-rank", "8", "--headless"]),
        (2, ["--data-parallel-start-rank", "12", "--headless"]),
    ],
)
def test_nodes_of_different_size_start_their_own_ranks(node: int, extra: list[str], tmp_path: Path) -> None:
    """Each node starts at the plan's own first rank there, whatever the sizes before it."""
    emission = ENGINE.emit(random_placement(TINY, 16, 16), question(TINY, machine(8, 4, 4), 16), "m")
    words = started(emission, tmp_path, "vllm", node_rank=node)
    local = ["8", "4", "4"][node]
    assert words[:-5] == [
        "serve", "m", "--tensor-parallel-size", "1", "--data-parallel-size", "16",
        "--data-parallel-size-local", local, "--data-parallel-address", "head.example",
        "--data-parallel-rpc-port", "13345", *extra, "--enable-expert-parallel",
    ]  # fmt: skip
    assert words[-5:-1] == ["--all2all-backend", "deepep_low_latency", "--enable-eplb", "--eplb-config"]
    assert json.loads(words[-1]) == {"num_redundant_experts": 16, "step_interval": 3000, "use_async": False}


def test_a_model_without_a_balancer_gets_no_balancer_flags(tmp_path: Path) -> None:
    """They would be ignored in silence; without replicas the plain launch is right."""
    model = find_model("gpt-oss-20b")
    emission = ENGINE.emit(random_placement(model, 8, 0), question(model, machine(8), 0), "m")
    assert "--enable-eplb" not in started(emission, tmp_path, "vllm", node_rank=None)
    assert "no expert balancer for gpt_oss" in emission.notes[0]


def test_arguments_of_the_script_reach_the_server(tmp_path: Path) -> None:
    """A user's own flags are added to the command."""
    launch = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m").launch
    assert launch.rstrip().endswith('"$@"')
