"""Layers over processes: the same bytes for any number of them, and Ctrl-C keeps what is done."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from planner.plan import Origin
from planner.planning import make_plan, problem_of_r
from planner.problem import Problem, violations
from planner.solvers import Progress, Search, Workforce, find_method
from planner.solvers.blocks import solve_in_blocks
from planner.solvers.kernels.arrays import Solved
from planner.solvers.workers import work_apart
from planner.solvers.workforce import Deadline
from tests.planner.problem.test_layers import traced
from tests.strategies import problem_of

PLENTY = 60.0  # seconds within which a child answers, on a busy machine


def skewed(layers: int) -> Problem:
    return problem_of(
        np.random.default_rng(3).integers(1, 1000, (layers, 6)).tolist(), gpus=4, slots_per_gpu=3
    )


def greedy(problem: Problem, *, budget_seconds: float | None, progress: Progress | None) -> Solved:
    """Travels to other processes."""
    assert budget_seconds is None or budget_seconds > 0
    return Solved(
        find_method("greedy")(problem), np.arange(len(problem.model.placed_layer_ids), dtype=np.float64)
    )


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("refine", "nearest"),
        ("pinned", "nearest"),
        ("remote", "nearest-static"),
        ("affinity", "nearest"),
        ("auto", "nearest-static"),
    ],
)
def test_any_number_of_workers_gives_the_same_plan(method: str, rule: str) -> None:
    """CP-SAT under its deterministic limit, settling under the engine's own table and a trace included; 1, 2
    and 3 workers.
    """
    problem = traced("node", rule)
    found = []
    for workers in (1, 2, 3):
        problem_of = problem_of_r(
            problem.model, problem.topology, problem.load, problem.workload, replica_rule=rule
        )
        plan = make_plan(
            problem_of, 2, Search(method, workforce=Workforce(workers)), Origin("sglang", method)
        )
        found.append(
            (
                plan.placement.expert_LP.tobytes(),
                plan.fitted.total_seconds,
                plan.bound.load_L.tobytes(),
                plan.origin,
            )
        )
    assert found[0] == found[1] == found[2]


def test_blocks_are_put_together_in_order() -> None:
    """One process, many blocks: a block's placement and bounds come to its rows.

    The bar ends where the work does.
    """
    problem, told = skewed(5), []
    solved = solve_in_blocks(
        problem, greedy, Workforce(1), Deadline(progress=lambda share, text: told.append(share)), seconds=6.0
    )
    assert solved.placement.expert_LP.tolist() == find_method("greedy")(problem).expert_LP.tolist()
    assert solved.bound_L.tolist() == [0, 0, 1, 0, 1]  # blocks of 1, 2 and 2 layers
    assert solved.stopped == ""


def test_a_budget_is_one_block_a_worker() -> None:
    """Each has the whole of it."""
    budgets: list[float | None] = []

    def solve(problem: Problem, *, budget_seconds: float | None, progress: Progress | None) -> Solved:
        budgets.append(budget_seconds)
        return greedy(problem, budget_seconds=budget_seconds, progress=progress)

    solve_in_blocks(skewed(5), solve, Workforce(1), Deadline(budget_seconds=9.0), seconds=100.0)
    assert budgets == [9.0]


def test_ctrl_c_between_blocks_keeps_what_is_done() -> None:
    """The first of three blocks is done: its rows stay, the others are greedy's, the plan may be judged."""
    problem, calls = skewed(3), []

    def solve(part: Problem, *, budget_seconds: float | None, progress: Progress | None) -> Solved:
        calls.append(part)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return Solved(find_method("linear")(part), np.zeros(1))

    solved = solve_in_blocks(problem, solve, Workforce(1), Deadline(), seconds=6.0)
    assert solved.placement.expert_LP[0].tolist() == find_method("linear")(problem).expert_LP[0].tolist()
    assert solved.placement.expert_LP[1:].tolist() == find_method("greedy")(problem).expert_LP[1:].tolist()
    assert "stopped by Ctrl-C" in solved.stopped
    assert "2 of 3 layers were not reached" in solved.stopped
    assert violations(problem, solved.placement) == []


def test_ctrl_c_before_any_block_gives_rows_of_greedy() -> None:
    """They take milliseconds, and are the best there is then."""

    def solve(part: Problem, *, budget_seconds: float | None, progress: Progress | None) -> Solved:
        raise KeyboardInterrupt

    solved = solve_in_blocks(skewed(3), solve, Workforce(1), Deadline(), seconds=0.0)
    assert solved.placement.expert_LP.tolist() == find_method("greedy")(skewed(3)).expert_LP.tolist()
    assert "3 of 3 layers were not reached" in solved.stopped


def test_a_fault_in_a_worker_is_not_swallowed() -> None:
    """It keeps its type and its words."""

    def solve(part: Problem, *, budget_seconds: float | None, progress: Progress | None) -> Solved:
        raise ValueError("a bug of ours")

    with pytest.raises(ValueError, match="a bug of ours"):
        solve_in_blocks(skewed(3), solve, Workforce(2), Deadline(), seconds=0.0)


def test_whoever_stops_between_two_results_hears_nothing(recwarn: pytest.WarningsRecorder) -> None:
    """Joblib's advice is for who writes the loop, not for who presses Ctrl-C in it."""
    results = work_apart(time.sleep, [0, 30, 30, 30], Workforce(2))
    next(results)
    results.close()
    assert [str(warning.message) for warning in recwarn] == []


SLOW_BLOCKS = """
import sys, time
from planner.solvers import find_method, Workforce
from planner.solvers.kernels.arrays import Solved
from planner.solvers.blocks import solve_in_blocks
from planner.solvers.workforce import Deadline
from tests.planner.solvers.test_workers import skewed
import numpy as np

def solve(part, *, budget_seconds, progress):
    # Long enough for the other process to have started
    time.sleep(60 if part.model.moe_layer_ids[0] != 0 else 3)
    return Solved(find_method("linear")(part), np.zeros(1))

def tell(share, text):
    if "done" in text:
        print("ready", flush=True)

solved = solve_in_blocks(skewed(4), solve, Workforce(2), Deadline(progress=tell), seconds=0.0)
print(solved.stopped)
"""

SOLVE = """
import sys, time
import planner.solvers.search, planner.solvers.methods.auto
from planner.cli import main

def wait(*_):
    print("ready", flush=True)
    time.sleep(60)

{patch} = wait
solve = "moeplan solve --model mixtral --topology hgx-h100:2x2 --redundant 4 --workers 1 --json"
sys.argv = [*solve.split(), "-o", {path!r}]
main()
"""


def interrupted(code: str) -> tuple[int, str, str]:
    """Exit code and output of a child that gets Ctrl-C, with all its processes as a terminal would send it,
    once it says ready; none is left.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        os.killpg(child.pid, signal.SIGINT)
        out, errors = child.communicate(timeout=PLENTY)
        deadline = time.monotonic() + PLENTY
        # Joblib's resource tracker ends when it sees its parent gone
        while _living(child.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _living(child.pid) == []
    finally:
        if _living(child.pid):
            os.killpg(child.pid, signal.SIGKILL)
    return child.returncode, out, errors


def _living(session: int) -> list[str]:
    """Processes of the session that still run, dead ones that nobody has collected apart."""
    living = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number, *_ = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(number) == session and state != "Z":
            living.append(str(stat))
    return living


def test_ctrl_c_leaves_no_worker() -> None:
    """Two processes at work, one block done: the rest is given up at once, and every process ends without a
    word.
    """
    began = time.monotonic()
    code, out, errors = interrupted(SLOW_BLOCKS)
    assert (code, errors) == (0, "")
    assert "3 of 4 layers were not reached" in out
    assert time.monotonic() - began < PLENTY


def test_ctrl_c_writes_the_best_so_far(tmp_path: Path) -> None:
    """All candidates are in, CP-SAT would be next: the plan is judged and written with a note.

    One line, exit 130.
    """
    path = tmp_path / "plan.json"
    code, out, errors = interrupted(
        SOLVE.format(patch="planner.solvers.methods.auto._worth_cpsat", path=str(path))
    )
    assert (code, len(errors.splitlines())) == (130, 1), errors
    assert "the best plan found so far" in errors
    value = json.loads(path.read_text())
    assert json.loads(out) == value
    assert any("stopped by Ctrl-C" in note for note in value["notes"])


def test_ctrl_c_before_any_placement_writes_nothing(tmp_path: Path) -> None:
    """One line, exit 130."""
    code, out, errors = interrupted(
        SOLVE.format(patch="planner.solvers.search.affordable_windows", path=str(tmp_path / "plan.json"))
    )
    assert (code, out, errors) == (130, "", "moeplan: interrupted; no file was written or changed\n")
    assert list(tmp_path.iterdir()) == []
