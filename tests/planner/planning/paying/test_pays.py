"""Whether balancing pays: each part against counts by hand, its limits, and the command as people meet it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from planner.cli import main
from planner.cost import cost, ledger
from planner.engines import REARRANGED_BYTES_PER_S, OnlineBalancer, balanced, default_placement
from planner.load import LoadProfile
from planner.placement import Placement
from planner.planning.paying import alternatives
from planner.planning.paying.alternatives import Question
from planner.planning.paying.batch import fitting
from planner.planning.paying.drift import Drift, drift_of
from planner.planning.paying.online import _stretches, once, play, seen_LE
from planner.planning.paying.rearranging import rearrangement
from planner.planning.paying.series import Series, series_of
from planner.problem import Problem, Workload
from planner.solvers import Search
from tests.planner.machines import two_by_two
from tests.planner.small import small_model

SOON = OnlineBalancer(interval_steps=10, window_steps=10, stalls=True, source="made up for tests")
NEVER = replace(SOON, interval_steps=10**9)


def posed(counts_WLE: object, slots_per_gpu: int = 3, **model: Any) -> Problem:
    """On two nodes of two GPUs, 100 tokens each: 400 assignments are a step."""
    counts = np.array(counts_WLE, dtype=np.int64)
    known = small_model(counts.shape[2], layers=counts.shape[1], **model)
    load = LoadProfile(counts, known.moe_layer_ids, "made up for tests")
    return Problem(two_by_two(), known, load, Workload(tokens_per_rank=100), slots_per_gpu)


def drifting(windows: int, rho: float, steps: int = 50, seed: int = 0) -> Problem:
    """Log-loads of 8 experts in 4 layers, each window rho times the one before plus noise."""
    draw = np.random.default_rng(seed)
    log_LE, found = draw.normal(0, 1, (4, 8)), []
    for _ in range(windows):
        share_LE = np.exp(log_LE) / np.exp(log_LE).sum(axis=1, keepdims=True)
        found.append(np.rint(share_LE * 400 * steps))
        log_LE = rho * log_LE + np.sqrt(1 - rho**2) * draw.normal(0, 1, (4, 8))
    return posed(found)


def windows(problem: Problem, fitted: int) -> tuple[Problem, Series]:
    load = problem.load
    first, last = list(range(fitted)), list(range(fitted, load.windows))
    held_out = load.with_windows(last) if last else None
    problem = replace(problem, load=load.with_windows(first))
    return problem, series_of(problem, held_out)


def asked(problem: Problem, series: Series, balancer: OnlineBalancer) -> Question:
    def problem_of(redundant: int) -> Problem:
        return replace(problem, slots_per_gpu=(problem.model.experts + redundant) // problem.gpus)

    return Question(problem_of, 0, problem.redundant, series, None, balancer, Search())


def test_a_window_stands_for_the_steps_that_its_tokens_make() -> None:
    """800 and 1,200 assignments of one expert a token, 100 tokens on each of four GPUs: 2 and 3 steps."""
    problem, series = windows(posed([[[500, 300, 0, 0]], [[600, 600, 0, 0]]], slots_per_gpu=1), 1)
    assert (series.steps_F.tolist(), series.steps_J.tolist()) == ([2.0], [3.0])
    assert series_of(problem, None, 7.0).steps_W.tolist() == [7.0]


def test_rearranging_by_hand() -> None:
    """Experts 0 and 2 change places between nodes, over a NIC of 50 GB/s each way, all at once; an engine
    does not reach that.
    """
    problem = posed([[[1, 1, 1, 1]]], slots_per_gpu=1)
    old, new = (Placement(np.array([row]), (0,), 4) for row in ([0, 1, 2, 3], [2, 1, 0, 3]))
    found = rearrangement(problem, old, new)
    size = problem.model.expert_bytes
    assert found.moved_share == 0.5
    assert found.total_bytes == 2 * size
    assert found.received_bytes == size
    assert found.cross_node_share == 1.0
    assert found.link_seconds == pytest.approx(size / 50e9)
    assert found.stall_seconds == pytest.approx(size / REARRANGED_BYTES_PER_S)
    assert rearrangement(problem, old, new, 41.8).stall_seconds == 41.8
    assert rearrangement(problem, old, old, 41.8).stall_seconds == 0


def test_slots_of_one_gpu_are_in_no_order_and_a_second_copy_on_it_is_no_transfer() -> None:
    problem = posed([[[1, 1, 1, 1]]], slots_per_gpu=2)
    old = Placement(np.array([[0, 1, 2, 3, 0, 2, 1, 3]]), (0,), 4)
    for row in ([1, 0, 3, 2, 0, 2, 3, 1], [0, 0, 2, 2, 0, 2, 3, 1]):
        assert rearrangement(problem, old, Placement(np.array([row]), (0,), 4)).total_bytes == 0


def test_rearrangements_fall_where_the_interval_says() -> None:
    """Windows of 25 steps, one every 10: at 10, 20 | 30, 40, 50 | 60, 70."""
    _, series = windows(posed([[[10000, 0, 0, 0]]] * 4, slots_per_gpu=1), 1)
    stretches = list(_stretches(series, 10))
    assert [[part[:2] for part in one.parts] for one in stretches] == [
        [(10.0, None), (10.0, 1), (5.0, 2)],
        [(5.0, None), (10.0, 3), (10.0, 4), (0.0, 5)],
        [(10.0, None), (10.0, 6), (5.0, 7)],
    ]
    crowded = list(_stretches(series, 1))
    assert [sum(times for _, number, times in one.parts if number) for one in crowded] == [25.0] * 3
    assert all(sum(part[0] for part in one.parts) == 25 for one in crowded)


def test_the_balancer_sees_its_last_steps_alone() -> None:
    """From step 40 to 60 of windows of 50 steps: half of each."""
    problem, series = windows(posed([[[20000, 0, 0, 0]], [[0, 20000, 0, 0]]], slots_per_gpu=1), 1)
    seen = seen_LE(problem, series, 40, 60)
    assert seen.sum() == 20 * 400
    assert seen[0, 2:].sum() == 0
    assert seen[0, 0] == pytest.approx(4000, rel=0.1)
    assert (seen == seen_LE(problem, series, 40, 60)).all()
    assert seen_LE(problem, series, 0, 30)[0].tolist() == [12000, 0, 0, 0]


@pytest.mark.parametrize("rho", [1.0, 0.9])
def test_online_balancing_that_never_comes_is_the_map_that_was_made_once(rho: float) -> None:
    problem, series = windows(drifting(6, rho), 3)
    question = asked(problem, series, NEVER)
    kept, (stops, flows) = alternatives.balanced_once(question), alternatives.online(question)
    for found in (stops, flows):
        assert [piece.cost.total_seconds for piece in found.pieces] == [
            piece.cost.total_seconds for piece in kept.pieces
        ]
        assert found.pause_seconds < 1e-9


def test_without_drift_online_balancing_is_no_better_than_a_static_plan() -> None:
    """What it sees is luck alone; its moves cost all the same."""
    problem, series = windows(drifting(6, 1.0), 3)
    question = asked(problem, series, SOON)
    stops, flows = alternatives.online(question)
    static = alternatives.static(question)
    seconds = [found.mean(lambda cost: cost.total_seconds) for found in (static, stops, flows)]
    assert seconds[1] == seconds[2] >= seconds[0] * 0.999
    assert stops.pause_seconds >= flows.pause_seconds > 0


def test_with_drift_online_balancing_follows_the_load() -> None:
    problem, series = windows(drifting(8, 0.5, steps=400), 2)
    played = play(problem, series, SOON, default_placement(None, problem))
    kept = once(problem, series, SOON)
    still = sum(cost(problem, kept, load).total_seconds for load in series.judged) / 6
    followed = sum(piece.steps * piece.cost.total_seconds for piece in played.pieces) / series.judged_steps
    assert followed < still
    assert played.rearranged > 6


def test_perfect_balance_is_perfect_and_pays_for_what_it_fetches() -> None:
    problem, series = windows(drifting(4, 0.9), 2)
    found = alternatives.perfect(asked(problem, series, SOON))
    assert all(piece.cost.max_over_mean == pytest.approx(1) for piece in found.pieces)
    assert found.buffer_bytes >= problem.model.expert_bytes
    even, flat = windows(posed([[[100] * 4]] * 2, slots_per_gpu=1), 1)
    assert alternatives.perfect(asked(even, flat, SOON)).buffer_bytes == 0


def test_drift_by_hand() -> None:
    """A plan costs 1 s on its window, 1.125 on the next and 1.375 on the one after: 0.25 s a step are lost
    to a plan of the window before, over 10 steps.
    """
    drift = Drift((1.0, 1.125, 1.375), (1.0, 1.125, 1.375), 10.0)
    assert drift.pays_after(2.5) == 20.0
    assert drift.pays_after(2.6) is None
    assert Drift((1.0,), (1.0,), 10.0).pays_after(0.0) is None
    assert Drift((1.0, 1.1, 1.1), (1.0, 1.1, 1.1), 10.0).pays_after(1.0) == float("inf")


def test_replicas_take_requests_from_the_batch() -> None:
    """A request takes all memory but 40 of its own size: 40 fit, and fewer beside replicas or a buffer."""
    problem = posed([[[1, 1, 1, 1]]], slots_per_gpu=1)
    bare = ledger(problem, None)
    tokens = int(bare.kv_left_bytes / 40 / bare.kv_token_bytes)
    long = replace(problem.workload, prompt_tokens=tokens - 1, output_tokens=1)
    problem = replace(problem, workload=long)
    found = fitting(problem, None)
    assert (found.problem.workload.tokens_per_rank, found.requests) == (40, 160)
    size = ledger(problem, None).request_bytes
    assert fitting(problem, None, 10.5 * size).problem.workload.tokens_per_rank == 29
    assert not fitting(problem, None, 41 * size).fits
    prefill = replace(problem, workload=replace(long, phase="prefill"))
    assert fitting(prefill, None).problem.workload.tokens_per_rank == 100


def test_a_load_that_stays_has_no_drift_and_one_that_turns_has() -> None:
    still = drift_of(*windows(drifting(5, 1.0), 3))
    assert np.ptp(still.seconds_K) == pytest.approx(0, abs=1e-12)
    moving = drift_of(*windows(drifting(5, 0.5), 3))
    assert moving.max_over_mean_K[0] < moving.max_over_mean_K[1]


def test_the_balancer_keeps_expert_groups_on_a_node_where_they_divide() -> None:
    """Groups 0-1, 2-3, 4-5, 6-7 on two nodes: both experts of a group are on one of them."""
    counts = np.array([[90, 10, 50, 40, 30, 20, 70, 60]])
    problem = posed([counts], slots_per_gpu=2, expert_groups=4)
    row_GS = balanced(problem, counts).expert_LP[0].reshape(4, 2)
    groups = [sorted({int(expert) // 2 for expert in row_GS[node : node + 2].ravel()}) for node in (0, 2)]
    assert groups == [[2, 3], [0, 1]]  # 130 tokens go to the first node, 100 and 90 to the other
    assert sorted(row_GS.ravel().tolist()) == list(range(8))


@pytest.fixture
def load_file(tmp_path: Path) -> Path:
    """Six windows of OLMoE's 16 layers that drift."""
    draw = np.random.default_rng(0)
    log_LE, found = draw.normal(0, 1, (16, 64)), []
    for _ in range(6):
        found.append(np.rint(np.exp(log_LE) / np.exp(log_LE).sum(axis=1, keepdims=True) * 8192 * 100))
        log_LE = 0.98 * log_LE + 0.2 * draw.normal(0, 1, (16, 64))
    path = tmp_path / "load.npz"
    np.savez(path, tokens=np.array(found, dtype=np.int64), layer_ids=np.arange(16))
    return path


QUESTION = ("--model", "olmoe", "--topology", "hgx-h100", "--method", "refine")


def told(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(main, ["pays", *QUESTION, *map(str, words)])
    assert found.exit_code == code, found.output
    return found.output


def test_the_first_line_is_the_answer(load_file: Path) -> None:
    text = told("--load", load_file, "--engine", "vllm", "--redundant", 8)
    assert " pays" in text.splitlines()[0]
    assert "vLLM's default (held out)" in text.splitlines()[0]
    assert text == told("--load", load_file, "--engine", "vllm", "--redundant", 8)


def test_figures_for_machines_are_those_of_the_table(load_file: Path) -> None:
    value = json.loads(told("--load", load_file, "--redundant", 8, "--stall", 100, "--stops", "--json"))
    rows = value["rows"]
    assert list(rows) == [
        *("default", "permutation", "static plan", "EPLB once"),
        *("EPLB, stops", "EPLB, async", "perfect"),
    ]
    assert rows["default"]["gain"] == 0
    assert rows["EPLB, stops"]["pause_seconds"] == pytest.approx(100 / value["online"]["interval_steps"])
    assert rows["EPLB, stops"]["gain"] < 0
    assert value["held_out"]
    assert value["answer"].endswith("no.")
    assert len(value["drift"]["seconds_by_lag"]) == 6


def test_one_window_says_that_drift_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "load.npz"
    counts = np.rint(np.random.default_rng(0).lognormal(0, 1, (1, 16, 64)) * 1e4).astype(np.int64)
    np.savez(path, tokens=counts, layer_ids=np.arange(16))
    text = told("--load", path)
    assert "on the load it was fitted to" in text.splitlines()[0]
    assert "Drift: unknown" in text
    assert "record several windows" in " ".join(text.split())


def test_an_even_load_is_answered_by_nothing(tmp_path: Path) -> None:
    path = tmp_path / "load.npz"
    np.savez(path, tokens=np.full((3, 16, 64), 12800), layer_ids=np.arange(16))
    assert told("--load", path).startswith("Nothing pays:")


def test_where_replicas_leave_no_room_a_permutation_is_named(load_file: Path) -> None:
    """OLMoE's 64 requests a rank of 128k tokens fill 80 GB at R = 0."""
    text = told("--load", load_file, "--redundant", 448, "--context", 520_000)
    assert "no room" in text
    assert "(R = 448) pays" not in text
    assert "requests of 520,000 tokens a rank" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --load FILE"),
        (("--interval", 0), "--interval 0"),
        (("--look-back", -1), "--look-back -1"),
        (("--stall", -2), "--stall -2"),
        (("--window-steps", 0), "--window-steps 0"),
        (("--redundant", 3), "--redundant"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[object, ...], said: str, load_file: Path) -> None:
    given = ("--load", load_file) if words else ()
    text = told(*given, *words, code=2)
    assert len(text.splitlines()) == 1
    assert said in text
