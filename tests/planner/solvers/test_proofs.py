"""What `--prove` claims: optimal means no placement is better, by trying all.

A wrong word of CP-SAT changes nothing; counted effort repeats itself.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from ortools.sat.python import cp_model

from planner.cli import main
from planner.cost import cost
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.solvers import Judge, Proof, find_method, prove
from planner.solvers.methods.cpsat.exact import solve_exact
from planner.solvers.methods.cpsat.integers import Answer
from planner.solvers.proofs import balance_proof, least_seconds_LN, objective_proof
from tests.planner.small import every_row, question, small_model
from tests.planner.tiny import mean_seconds_L, price_all, tiny_problem
from tests.strategies import cluster

PUBLISHED = [
    600,
    560,
    120,
    120,
    20,
    10,
    10,
    10,
]  # 8 GPUs x 2 slots: 590 / 3 is the least busiest GPU under even shares


def judge_of(problem: Problem, windows: list[LoadProfile] | None = None) -> Judge:
    windows = windows or [problem.load]
    return Judge(
        lambda placement: mean_seconds_L(problem, windows, placement),
        windows,
        lambda seconds_WN: seconds_WN.mean(axis=0),
    )


def start(problem: Problem, method: str = "linear") -> Proof:
    layers = len(problem.model.placed_layer_ids)
    return Proof(find_method(method)(problem), np.zeros(layers), np.zeros(layers, dtype=bool))


@pytest.mark.parametrize("transport", ["slot", "rank", "node"])
@pytest.mark.parametrize("rule", ["even", "nearest", "nearest-dynamic", "hashed", "fixed-by-source"])
def test_optimal_is_what_no_placement_beats(rule: str, transport: str) -> None:
    """Three and four experts, R = 1 and 0, topology, rule and transport included: the answer costs what the
    best of all placements costs.
    """
    for experts, traced_tokens in ((3, 0), (4, 12)):
        problem = tiny_problem("leaf-spine", experts, 1, 2, rule, transport, 300, traced_tokens, seed=experts)
        proof = prove(problem, start(problem), judge_of(problem))
        assert proof.optimal_L.tolist() == [True]
        assert violations(problem, proof.placement) == []
        assert cost(problem, proof.placement).layer_seconds_L[0] == pytest.approx(
            price_all(problem).layer_seconds_L.min(), rel=1e-9
        )


def test_optimal_over_two_windows() -> None:
    """The mean over windows is what is proven: the best of all 978 placements by it, which fits neither
    window alone.
    """
    loads = [
        LoadProfile(np.array([[counts]]), (0,), "made up for tests")
        for counts in ([9, 5, 1, 1], [1, 1, 5, 9])
    ]
    problem = replace(
        question(tokens_per_rank=4000),
        load=LoadProfile(np.array([[[9, 5, 1, 1]], [[1, 1, 5, 9]]]), (0,), "made up for tests"),
    )
    proof = prove(problem, start(problem), judge_of(problem, loads))
    means_N = np.mean([price_all(replace(problem, load=load)).layer_seconds_L for load in loads], axis=0)
    assert proof.optimal_L.tolist() == [True]
    assert mean_seconds_L(problem, loads, proof.placement)[0] == pytest.approx(means_N.min(), rel=1e-9)


def test_no_placement_is_ruled_out_wrongly() -> None:
    """What rules a placement out, its least seconds, is below its price: all 978, on average over two
    windows.
    """
    problem = question(tokens_per_rank=3000)
    windows = [problem.load, replace(problem.load, tokens_WLE=np.array([[[1, 1, 4, 9]]]))]
    rows_NP = every_row(4, 4, 2).reshape(-1, 8)
    least_N = least_seconds_LN(problem, rows_NP, judge_of(problem, windows))[0]
    means_N = np.mean(
        [price_all(replace(problem, load=load), rows_NP).layer_seconds_L for load in windows], axis=0
    )
    assert (least_N <= means_N * (1 + 1e-9)).all()
    assert len(np.unique(least_N)) > 10  # it tells placements apart


def test_the_first_layers_need_not_be_the_best_known() -> None:
    """Layers are proven apart: one starts at its optimum, one does not, and both end there."""
    model = small_model(layers=2)
    load = LoadProfile(np.array([[[2, 2, 1, 1], [9, 1, 1, 1]]]), (0, 1), "made up for tests")
    problem = replace(question(), model=model, load=load)
    proof = prove(problem, start(problem), judge_of(problem))
    assert proof.optimal_L.tolist() == [True, True]
    alone = [price_all(question(counts)).layer_seconds_L.min() for counts in ([2, 2, 1, 1], [9, 1, 1, 1])]
    assert cost(problem, proof.placement).layer_seconds_L == pytest.approx(np.array(alone), rel=1e-9)


def test_balance_is_proven_by_cpsat() -> None:
    """A published instance: the bounds alone do not reach its optimum, 590 / 3, CP-SAT does.

    Under another rule only the mean, 181.25, may be claimed.
    """
    load = LoadProfile(np.array([[PUBLISHED]]), (0,), "a published example")
    for rule, bound in (("even", 590 / 3), ("hashed", 181.25)):
        problem = Problem(cluster(2, 4), small_model(8), load, question().workload, 2, rule)
        proof = balance_proof(problem, start(problem, "greedy"), judge_of(problem))
        assert proof.load_share_L[0] * sum(PUBLISHED) == pytest.approx(bound)


def test_layers_of_equal_load_are_proven_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three layers, two of them alike and one at its bound: CP-SAT is asked once, both have its answer."""
    asked: list[list[float]] = []

    def counted(load_E: np.ndarray, *sizes: int, **settings: Any) -> Answer:
        asked.append(load_E.tolist())
        return solve_exact(load_E, *sizes, **settings)

    monkeypatch.setattr("planner.solvers.proofs.solve_exact", counted)
    load = LoadProfile(
        np.array([[PUBLISHED, [1] * 8, PUBLISHED]]), (0, 1, 2), "a published example, and one made up"
    )
    problem = Problem(cluster(2, 4), small_model(8, layers=3), load, question().workload, 2)
    shares_L = balance_proof(problem, start(problem), judge_of(problem)).load_share_L
    assert asked == [PUBLISHED]
    assert shares_L[0] == shares_L[2] == pytest.approx(590 / 3 / sum(PUBLISHED))


def test_a_false_infeasible_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT says infeasible to everything: the placements at hand are witnesses that it is not, stay, and
    are not called proven by it.
    """
    problem = question(PUBLISHED, slots_per_gpu=3)
    before = start(problem, "greedy")
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_, **__: cp_model.INFEASIBLE)
    for rule in ("even", "hashed"):
        asked = problem.with_rule(rule)
        proof = balance_proof(asked, before, judge_of(asked))
        assert proof.placement.expert_LP.tolist() == before.placement.expert_LP.tolist()
        assert proof.load_share_L[0] * sum(PUBLISHED) < 600
    for method in ("cpsat", "auto"):
        assert violations(problem, find_method(method)(problem)) == []


def test_a_row_that_hangs_on_other_layers_is_not_tried_alone() -> None:
    """SGLang's static table draws through all layers: no layer's price is its own, and nothing is claimed."""
    problem = tiny_problem(rule="nearest-static")
    proof = start(problem)
    assert objective_proof(problem, proof, judge_of(problem)) is proof


def test_too_little_effort_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices run out before the placements do: the best so far is kept, and not called optimal."""
    monkeypatch.setattr("planner.solvers.proofs.PRICES", 3)
    problem = question(rule="fixed-by-source", tokens_per_rank=4)
    proof = objective_proof(problem, start(problem), judge_of(problem))
    assert proof.optimal_L.tolist() == [False]
    assert (
        cost(problem, proof.placement).total_seconds <= cost(problem, start(problem).placement).total_seconds
    )


def test_a_placement_that_breaks_a_rule_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that the enumeration does not know hold: where the cheapest placement breaks one, the plan stays
    as balance left it.
    """
    problem = tiny_problem(seed=1)
    monkeypatch.setattr("planner.solvers.proofs.violations", lambda *_: ["broken"])
    before = start(problem)
    proof = prove(problem, before, judge_of(problem))
    assert proof.optimal_L.tolist() == [False]


def test_the_same_question_gives_the_same_bytes(tmp_path: Path) -> None:
    """Without a budget effort is counted; the plan says which layers are proven, and of what."""
    question = ["--model", "mixtral", "--topology", "hgx-h100:1x4", "--redundant", "0"]
    command = ["solve", *question, "--prove", "--details", "-o"]
    for name in ("a.json", "b.json"):
        result = CliRunner().invoke(main, [*command, str(tmp_path / name)])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    bound = json.loads((tmp_path / "a.json").read_text())["bound"]
    assert all(bound["proven_objective"])
    assert "for the objective over windows: layers 0-31" in " ".join(result.output.split())


def test_a_budget_is_kept_to() -> None:
    """A wall-clock budget ends the proof; the placement is as good as before at least."""
    problem = question([13, 11, 7, 5, 3, 2], slots_per_gpu=2, rule="fixed-by-source")
    before = Placement(np.array([[0, 1, 2, 3, 4, 5, 0, 1]]), (0,), 4)
    proof = prove(
        problem, Proof(before, np.zeros(1), np.zeros(1, dtype=bool)), judge_of(problem), budget_seconds=0.2
    )
    assert cost(problem, proof.placement).total_seconds <= cost(problem, before).total_seconds
