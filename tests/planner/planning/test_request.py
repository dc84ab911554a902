"""From flags to a judged plan: what is assumed is said, what cannot be answered is refused.

Doing nothing is always beside it.
"""

import math
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput, Infeasible
from planner.cost import cost
from planner.engines import engine_names, find_engine
from planner.plan import write_plan
from planner.planning import Anew, PlanRequest, answer, evaluate_engines, find_topology
from planner.planning.evaluation import re_evaluate
from planner.problem import violations

FOUR = PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="refine")


def test_every_assumption_is_a_note() -> None:
    """No topology, a profile with gaps, a chosen R: each is said in the plan itself."""
    notes = "\n".join(answer(PlanRequest("mixtral", method="greedy")).origin.notes)
    for words in ("the preset hgx-h100 was assumed", "not measured", "was chosen"):
        assert words in notes


def test_a_model_without_a_profile_is_planned_on_an_even_load_and_says_so() -> None:
    """Nobody may take an assumed load for a measured one."""
    plan = answer(PlanRequest("olmoe", topology="hgx-h100:1x4", redundant=0, method="linear"))
    assert "assumed" in " ".join(plan.origin.notes)
    assert plan.held_out is None


def test_reported_costs_are_recomputed_ones() -> None:
    """The plan's own figures, its held-out ones and those of the baselines."""
    plan = answer(FOUR)
    assert plan.fitted.total_seconds == cost(plan.problem, plan.placement).total_seconds
    assert plan.held_out is not None
    assert plan.held_out_load is not None
    assert plan.held_out.total_seconds == cost(plan.problem, plan.placement, plan.held_out_load).total_seconds
    assert [baseline.redundant for baseline in plan.baselines] == [4, 0]


def test_no_placement_beats_the_bound() -> None:
    """Load and seconds, for the plan and for random valid placements."""
    plan = answer(FOUR)
    assert plan.gap >= -1e-9
    assert plan.bound_seconds <= plan.fitted.total_seconds
    assert all(
        plan.bound_seconds <= baseline.fitted.total_seconds
        for baseline in plan.baselines
        if baseline.redundant == plan.problem.redundant
    )


def test_auto_never_loses_to_the_default_on_the_load_it_was_fitted_to() -> None:
    """The linear layout is in the portfolio, layer by layer."""
    plan = answer(PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="auto"))
    assert plan.fitted.total_seconds <= min(
        baseline.fitted.total_seconds for baseline in plan.baselines if baseline.redundant == 4
    ) * (1 + 1e-12)
    assert violations(plan.problem, plan.placement) == []


@pytest.mark.parametrize("engine", ["sglang", "trtllm", "vllm"])
def test_an_engine_brings_its_rule_and_default(engine: str) -> None:
    """The plan is judged under what will run it."""
    plan = answer(
        PlanRequest("deepseek-v2-lite", topology="hgx-h100:2x2", redundant=8, method="greedy", engine=engine)
    )
    assert plan.origin.engine == engine
    assert (
        plan.problem.replica_rule
        == {"sglang": "nearest-static", "trtllm": "round-robin", "vllm": "hashed"}[engine]
    )


def test_one_placement_is_priced_under_every_engine(tmp_path: Path) -> None:
    """Each under its own rule, and with the figures that asking for that engine alone gives.

    With one token a rank vLLM's hash leaves replicas idle.
    """
    plan_file = write_plan(
        answer(
            PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="greedy", tokens_per_rank=1)
        ),
        tmp_path / "plan.json",
    )
    found, _ = evaluate_engines(plan_file)
    assert tuple(found) == engine_names()
    for name, (problem, priced) in found.items():
        assert problem.replica_rule == find_engine(name).replica_rule(
            problem.workload.phase, problem.topology, problem.model
        )
        assert priced.total_seconds == re_evaluate(plan_file, Anew(engine=name))[1].total_seconds
    assert found["vllm"][1].max_over_mean > found["trtllm"][1].max_over_mean + 0.1


def test_ep_takes_whole_nodes_or_part_of_the_first() -> None:
    """Rank order is node by node; an EP size that would cut a later node is refused with those that fit."""
    assert find_topology("hgx-h100:4", 16)[0].node_count == 2
    assert find_topology("hgx-h100:4", 2)[0].gpu_count == 2
    with pytest.raises(BadInput, match="8, 16, 24, 32"):
        find_topology("hgx-h100:4", 12)


def test_memory_floor_is_kept() -> None:
    """Replicas that would eat the KV cache are refused, with the largest floor that would fit."""
    with pytest.raises(
        Infeasible, match=r"28\.8 GB .* missing at R = 8: what fits is --redundant 0 --kv-floor '57\.4 GB'"
    ):
        answer(
            PlanRequest("mixtral", topology="hgx-h100:1x8", redundant=8, kv_floor_bytes=75e9, method="linear")
        )


def test_re_evaluation_on_the_same_inputs_changes_nothing(tmp_path: Path) -> None:
    """`evaluate` of a plan with its own load and machine gives the plan's own figures."""
    plan = answer(FOUR)
    _, found, _ = re_evaluate(write_plan(plan, tmp_path / "plan.json"))
    assert found.total_seconds == plan.fitted.total_seconds
    _, elsewhere, _ = re_evaluate(tmp_path / "plan.json", Anew(topology="hgx-a100:2x2"))
    assert elsewhere.total_seconds != plan.fitted.total_seconds


def test_a_trace_makes_the_rank_transport_exact(tmp_path: Path) -> None:
    """Two experts always chosen together, placed on one GPU, cost one message a token; the histogram alone
    cannot know.
    """
    pairs_TK = np.array([[0, 1], [2, 3], [4, 5], [6, 7]] * 64)
    np.savez(tmp_path / "trace.npz", topk_ids=np.tile(pairs_TK, (32, 1, 1)), seq_lens=[64, 64, 64, 64])
    plan = answer(
        PlanRequest(
            "mixtral",
            topology="hgx-h100:1x4",
            load_files=(tmp_path / "trace.npz",),
            redundant=0,
            method="linear",
            transport="rank",
            held_out=0,
        )
    )
    assert plan.problem.load.trace is not None
    alone = cost(plan.problem, plan.placement)
    start = math.fsum([37e-6] * 32)
    histogram = answer(
        PlanRequest(
            "mixtral", topology="hgx-h100:1x4", redundant=0, method="linear", transport="rank", held_out=0
        )
    )
    assert float(alone.dispatch_seconds_L.sum()) - start < 0.62 * (
        float(histogram.fitted.dispatch_seconds_L.sum()) - start
    )


@pytest.mark.parametrize(
    ("engine", "told"), [("sglang", True), ("trtllm", False), ("vllm", False), (None, False)]
)
def test_a_map_that_no_one_would_read_is_told_of(engine: str | None, told: bool) -> None:
    """SGLang takes no map for Mixtral; TensorRT-LLM does, vLLM has its plugin, and without an engine nothing
    is claimed.
    """
    plan = answer(
        PlanRequest(
            "mixtral", topology="hgx-h100:2x2", redundant=4, method="greedy", engine=engine, context=1024
        )
    )
    assert any("does not read a map for mixtral" in note for note in plan.origin.notes) == told
