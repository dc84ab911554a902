"""The benchmark's frame: what it runs, what it refuses, and that its figures are those of the placements."""

from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.bench import balance, run_bench
from planner.bench.cold import solve_cold
from planner.bench.frame import Instance, Peers, synthetic_problem
from planner.bench.peers import load_peers
from planner.bench.registry import study_names
from planner.placement import Placement
from planner.problem import Problem
from planner.report.bench import bench_tables, shown
from planner.solvers import find_method

TINY = Instance("3x8 -> 16 / 8 GPUs", 3, 8, 2, "hgx-h100")


def test_every_file_with_a_run_is_a_study() -> None:
    """Studies are found, kernels are not taken for one."""
    assert {"balance", "scale"} <= set(study_names())
    assert not {"frame", "cold", "peers"} & set(study_names())


def test_no_repeats_are_refused() -> None:
    """A median of nothing is no figure."""
    with pytest.raises(BadInput, match="--repeats 0: it must be at least 1"):
        run_bench(["balance"], (), 0)


def test_an_unknown_study_names_the_known_ones() -> None:
    """A slip of the pen costs no benchmark."""
    with pytest.raises(BadInput, match="study 'balanse' is unknown; known are balance"):
        run_bench(["balanse"], [], 1)


def test_a_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    """One line, before anything is timed."""
    pytest.importorskip("torch")
    wheel = tmp_path / "vllm.whl"
    wheel.write_bytes(b"no zip")
    with pytest.raises(BadInput, match="not a wheel"):
        load_peers([wheel])


def test_balance_compares_in_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer comes first and is the unit of time.

    A placement with an expert twice on a GPU is shown as invalid.
    """
    monkeypatch.setattr(balance, "INSTANCES", (TINY,))
    doubled_LP = np.tile(np.repeat(np.arange(8), 2), (3, 1))
    table = balance.run(Peers({"vLLM 0.33 default": lambda *_: doubled_LP}), 1, None)
    assert [row["method"] for row in table.rows] == ["vLLM 0.33 default", "greedy", "refine"]
    assert [row["valid"] for row in table.rows] == [False, True, True]
    assert table.rows[0]["of_vLLM 0.33 default"] == 1.0
    assert len({tuple(row) for row in table.rows}) == 1
    bench_tables({"balance": table})


def test_no_run_is_handed_the_problem_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that keeps its last answer would else be timed at doing nothing."""
    monkeypatch.setattr(balance, "INSTANCES", (TINY,))
    asked: list[object] = []

    def peer(*_: object) -> np.ndarray:
        return np.tile(np.arange(16) % 8, (3, 1))

    def noted(problem: Problem) -> Placement:
        asked.append(problem)
        return find_method("greedy")(problem)

    monkeypatch.setattr(balance, "_ours", lambda _: noted)
    balance.run(Peers({"peer": peer}), 3, None)
    assert len({id(problem) for problem in asked}) == len(asked) == 6


def test_the_busiest_gpu_is_recomputed_from_the_placement() -> None:
    """Equal to a sum by hand."""
    problem = synthetic_problem(TINY)
    placement = find_method("greedy")(problem)
    by_hand = []
    for shares_E, expert_P in zip(problem.shares_LE, placement.expert_LP, strict=True):
        counts = [list(expert_P).count(expert) for expert in range(8)]
        by_hand.append(
            max(sum(shares_E[e] / counts[e] for e in expert_P[gpu * 2 : gpu * 2 + 2]) for gpu in range(8))
        )
    assert balance.busiest_L(problem, placement) == pytest.approx(by_hand)


def test_a_cold_solve_is_a_process_with_time_and_memory() -> None:
    """The plan that it wrote comes back; a Python process with NumPy takes more than 20 MB."""
    run = solve_cold(TINY, "--method", "greedy")
    assert run.plan["gpus"] == 8
    assert run.seconds > 0
    assert run.peak_bytes > 20e6


def test_units_come_from_names() -> None:
    """A column's name says how its figures are shown."""
    assert shown("moved_share", 0.07) == "7.000%"
    assert shown("of_vllm", 0.3) == "0.30 x"
    assert shown("balancedness", 0.98765) == "0.9877"
    assert shown("slots", 1152) == "1,152"
