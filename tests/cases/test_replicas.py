"""C01, C02, C15: who gets replicas, and what each of them serves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.placement import Placement
from planner.replica import Situation
from planner.replica.registry import RULES
from tests.cases.asked import FOUR_GPUS, Made, told
from tests.planner.small import small_model

METHODS = ("linear", "round-robin", "greedy", "refine", "cpsat", "auto")


@pytest.mark.parametrize("method", METHODS)
def test_c01_no_expert_is_twice_on_a_gpu(method: str, model: Made, save: Made) -> None:
    """8 experts in 12 slots on an even load, where a published balancer doubles an expert on every GPU.

    Max/mean 1 is there to be had.
    """
    load = save("load.json", [[5] * 8])
    plan = told(f"solve --model {model(8)} --load {load} --redundant 4 {FOUR_GPUS} --method {method}")
    rows_GS = np.reshape(plan["placement"]["0"], (4, 3))
    assert [len(set(row)) for row in rows_GS.tolist()] == [3] * 4
    if method in ("greedy", "refine", "cpsat", "auto"):
        assert plan["predicted"]["fitted"]["max_over_mean"] == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["greedy", "refine", "cpsat", "auto"])
def test_c02_no_more_replicas_than_gpus(method: str, model: Made, save: Made) -> None:
    """The hot expert gets one replica a GPU and not a fifth.

    The spare slot goes to another expert: 251 over 250.75, not 1.595.
    """
    load = save("load.json", [[1000, 1, 1, 1]])
    plan = told(f"solve --model {model(4)} --load {load} --redundant 4 {FOUR_GPUS} --method {method}")
    assert plan["placement"]["0"].count(0) == 4
    assert plan["predicted"]["fitted"]["max_over_mean"] == pytest.approx(251 / 250.75)


def test_c15_replicas_serve_what_the_engine_gives_them() -> None:
    """Replicas of expert 0 on GPUs 0, 4 and 7 of two nodes serve 4 : 3 : 1 ranks under SGLang.

    They serve a third each only where a rule splits evenly.
    """
    row = [0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12, 0, 13]
    placement = Placement(np.array([row]), (0,), 8)
    situation = Situation(small_model(14), np.repeat([0, 1], 4))

    def ranks_served(rule: str) -> Any:
        (share_SP,) = RULES[rule](placement, situation)
        return pytest.approx(np.broadcast_to(share_SP, (8, 16)).sum(axis=0)[[0, 8, 14]].tolist())

    assert ranks_served("nearest-static") == [4, 3, 1]
    assert ranks_served("even") == [8 / 3] * 3


def test_c15_a_plan_is_judged_under_its_engines_rule(planned: tuple[Path, dict[str, Any]]) -> None:
    """The same placement has another balance under SGLang's rule than under the even split."""
    found = told(f"evaluate {planned[0]} --all-engines")["engines"]
    assert found["sglang"]["replica_rule"] == "nearest-static"
    assert found["sglang"]["max_over_mean"] != pytest.approx(found["trtllm"]["max_over_mean"])
