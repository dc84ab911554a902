"""LightLLM: the lists of hot experts, what it makes of them, and its launch."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.engines.lightllm import listed_experts, served
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem import Problem
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("lightllm")


def loaded(model: ModelSpec, gpus: int, redundant: int, counts_E: list[int]) -> Problem:
    """A question about the same counts in every layer."""
    counts = np.tile(np.array(counts_E), (1, len(model.placed_layer_ids), 1))
    problem = question(model, machine(gpus), redundant)
    return replace(problem, load=LoadProfile(counts, model.placed_layer_ids, "made for tests"))


EIGHT = replace(TINY, experts=8, top_k=2, expert_groups=1, groups_per_token=1)


def test_the_busiest_rank_is_relieved_one_expert_at_a_time() -> None:
    """Two experts a rank, 9 + 8, 10 + 1, 3 + 3, 2 + 2: first the 9 of the busiest rank, then the 10 of the
    next, although 10 is the hottest.
    """
    problem = loaded(EIGHT, 4, 8, [9, 8, 10, 1, 3, 3, 2, 2])
    assert listed_experts(problem)[3] == [0, 2]


def test_lists_are_as_long_for_every_layer() -> None:
    """With a shorter `default` LightLLM's router would take other slots than its loader filled."""
    emission = ENGINE.emit(random_placement(TINY, 8, 24), question(TINY, machine(8), 24), "m")
    value = json.loads(emission.files["redundancy_experts.json"])
    assert value["redundancy_expert_num"] == 3
    assert set(value) == {"redundancy_expert_num", "3", "4", "5", "default"}
    assert {len(value[key]) for key in ("3", "4", "5", "default")} == {3}


def test_what_it_serves_is_blocks_and_copies() -> None:
    """Rank r holds its block and then the list; a step is compared with the plan's."""
    problem, placement = loaded(EIGHT, 4, 8, [9, 8, 10, 1, 3, 3, 2, 2]), random_placement(EIGHT, 4, 8)
    made = served(placement, problem)
    assert made.expert_LP[0].tolist() == [0, 1, 0, 2, 2, 3, 0, 2, 4, 5, 0, 2, 6, 7, 0, 2]
    emission = ENGINE.emit(placement, problem, "m")
    assert any(text.startswith("WARNING: LightLLM does not place experts") for text in emission.notes)
    assert not emission.ignored


@pytest.mark.parametrize(
    ("redundant", "why"), [(0, "does not place experts"), (8, "takes no list of 1 expert")]
)
def test_what_no_list_can_say_gets_flags_alone(redundant: int, why: str) -> None:
    """No replicas but another order; one expert a rank, against which LightLLM asserts."""
    emission = ENGINE.emit(random_placement(TINY, 8, redundant), question(TINY, machine(8), redundant), "m")
    assert why in emission.ignored
    assert set(emission.files) == {"launch.sh"}


def test_blocks_in_order_are_what_it_serves_anyway() -> None:
    """The one plan without replicas that it does serve."""
    placement = ENGINE.default_placement(TINY, 8, 0)
    assert not ENGINE.emit(placement, question(TINY, machine(8), 0), "m").ignored


def test_experts_that_do_not_divide_are_refused() -> None:
    """24 ranks, 64 experts: LightLLM would round down, and lose 16 of them."""
    with pytest.raises(BadInput, match="do not divide over 24"):
        ENGINE.emit(random_placement(TINY, 24, 8), question(TINY, machine(8, 8, 8), 8), "m")


def test_the_launch(tmp_path: Path) -> None:
    """The second of two nodes."""
    emission = ENGINE.emit(random_placement(TINY, 8, 16), question(TINY, machine(4, 4), 16), "m")
    words = started(emission, tmp_path, "python3", 1)
    assert words[:4] == ["-m", "lightllm.server.api_server", "--model_dir", "m"]
    assert words[words.index("--node_rank") + 1] == "1"
    assert words[words.index("--nccl_host") + 1] == "head.example"
    path = Path(words[words.index("--ep_redundancy_expert_config_path") + 1])
    assert path.is_file()
    assert path.name == "redundancy_experts.json"
