"""What a plan reports is what its file says when it is read again, by the judge's own laws.

Every method, replica rule and transport.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import dump_json
from planner.bounds import time_bound
from planner.cost import Cost, cost, objective_seconds_L, windows_of
from planner.load import LoadProfile, Trace, split_windows
from planner.plan import (
    Origin,
    Plan,
    cost_to_dict,
    disagreements,
    held_out_load,
    plan_from_dict,
    plan_to_dict,
    write_plan,
)
from planner.planning import Anew, PlanRequest, answer, make_plan
from planner.planning.evaluation import re_evaluate
from planner.problem import TRANSPORTS, Objective, Problem, Workload
from planner.replica.registry import RULES
from planner.solvers import Search, Workforce
from planner.solvers.registry import method_names
from tests.planner.small import small_model, two_nodes

SLOW = ("auto", "cpsat")  # run CP-SAT


@st.composite
def asked(draw: st.DrawFn) -> Problem:
    """Two layers on two nodes of two GPUs, five sequences of four tokens, with the trace or with its counts
    alone.
    """
    experts, top_k = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    seeded = np.random.default_rng(draw(st.integers(0, 1000)))
    ids_LTK = np.array(
        [[seeded.permutation(experts)[:top_k] for _ in range(20)] for _ in range(2)], dtype=np.int32
    )
    counts_WLE = np.array(
        [
            [np.bincount(ids_TK[first : first + 4].ravel(), minlength=experts) for ids_TK in ids_LTK]
            for first in range(0, 20, 4)
        ]
    )
    trace = Trace(ids_LTK, (4,) * 5) if draw(st.booleans()) else None
    load = LoadProfile(counts_WLE.astype(np.int64), (0, 1), "made up for tests", trace=trace)
    workload = Workload(
        draw(st.sampled_from([1, 64, 3000])),
        draw(st.sampled_from(["decode", "prefill"])),
        transport=draw(st.sampled_from(sorted(TRANSPORTS))),
    )
    objective = draw(st.sampled_from([Objective(), Objective("worst"), Objective("risk", 1.0)]))
    slots_per_gpu = draw(st.integers(-(-experts // 4), experts))
    return Problem(
        two_nodes(),
        small_model(experts, top_k, 2),
        load,
        workload,
        slots_per_gpu,
        draw(st.sampled_from(sorted(RULES))),
        objective=objective,
    )


def planned(problem: Problem, method: str) -> tuple[Plan, dict[str, Any]]:
    """A plan with held-out load, and its file."""
    fitted, held_out = split_windows(problem.load)
    problem = replace(problem, load=fitted)
    plan = make_plan(
        lambda _: problem,
        problem.redundant,
        Search(method, workforce=Workforce(1)),
        Origin(None, method),
        held_out,
    )
    return plan, json.loads(dump_json(plan_to_dict(plan)))


def same(reported: Any, found: Cost, keys: tuple[str, ...]) -> None:
    """Whole step and each layer."""
    recomputed = cost_to_dict(found)
    for key in keys:
        assert reported[key] == pytest.approx(recomputed[key], rel=1e-12), key
    for said, row in zip(reported["layers"], recomputed["layers"], strict=True):
        for key in set(keys) & set(row):
            assert said[key] == pytest.approx(row[key], rel=1e-12), key


def check_reported(problem: Problem, method: str) -> None:
    """Costs of the file's own problem and placement; the objective over windows, and the bound, of the
    plan's.
    """
    plan, value = planned(problem, method)
    again, placement, _ = plan_from_dict(value, "plan.json")
    assert disagreements(again, placement, value) == []
    untraced = problem.load.trace is None or problem.workload.transport not in (
        "rank",
        "node",
    )  # a trace is not in the file
    keys = (
        "max_over_mean",
        "cross_node_share",
        "compute_seconds",
        *(("total_seconds", "dispatch_seconds", "combine_seconds") if untraced else ()),
    )
    same(value["predicted"]["fitted"], cost(again, placement), keys)
    same(
        value["predicted"]["held_out"],
        cost(again, placement, held_out_load(value, again.model, "plan.json")),
        keys,
    )
    same(
        value["predicted"]["held_out"],
        cost(plan.problem, placement, plan.held_out_load),
        (*keys, "total_seconds", "dispatch_seconds", "combine_seconds"),
    )
    for side, load in (("fitted", plan.problem.load), ("held_out", plan.held_out_load)):
        assert load is not None
        recomputed = objective_seconds_L(plan.problem, windows_of(plan.problem, load), placement).sum()
        assert value["predicted"][f"{side}_objective_seconds"] == pytest.approx(recomputed, rel=1e-12)
    total = value["predicted"]["fitted"]["total_seconds"]
    assert time_bound(plan.problem).total_seconds <= value["bound"]["total_seconds"] * (1 + 1e-9)
    assert value["bound"]["total_seconds"] <= total * (1 + 1e-9)
    assert value["bound"]["gap_seconds_share"] == pytest.approx(
        total / value["bound"]["total_seconds"] - 1, abs=1e-12
    )


@pytest.mark.parametrize("method", [name for name in method_names() if name not in SLOW])
@settings(max_examples=15)
@given(problem=asked())
def test_reported_is_recomputed(method: str, problem: Problem) -> None:
    """Methods that answer in milliseconds, any rule, transport, phase and objective, traced or not."""
    check_reported(problem, method)


@pytest.mark.parametrize("method", SLOW)
@settings(max_examples=6)
@given(problem=asked())
def test_exact_methods_report_what_is_recomputed(method: str, problem: Problem) -> None:
    """The same of the methods that run CP-SAT."""
    check_reported(problem, method)


def test_evaluate_says_what_the_file_does_not_hold(tmp_path: Path) -> None:
    """Under `node` a trace counts and is not in the plan's file: one note; with the trace given, or under
    `slot`, none.
    """
    trace_file = tmp_path / "trace.npz"
    ids_LTK = np.array([[np.random.default_rng(token).permutation(8)[:2] for token in range(40)]] * 32)
    np.savez(trace_file, topk_ids=ids_LTK, seq_lens=np.array([10] * 4), layer_ids=np.arange(32))
    for transport, notes in (("node", 1), ("slot", 0)):
        question = PlanRequest(
            "mixtral",
            topology="hgx-h100:2x2",
            load_files=(trace_file,),
            redundant=4,
            method="greedy",
            transport=transport,
            context=1024,
        )
        path = write_plan(answer(question), tmp_path / "plan.json")
        assert sum("which experts tokens chose together" in note for note in re_evaluate(path)[2]) == notes
        assert not any(
            "which experts tokens chose together" in note
            for note in re_evaluate(path, Anew((trace_file,)))[2]
        )
