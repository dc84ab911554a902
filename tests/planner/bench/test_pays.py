"""The study of public end-to-end figures: its signs on models of few layers, and its loads and placements."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.bench import pays as study
from planner.bench.frame import Peers, synthetic_model
from planner.bench.mi355 import eight_mi355
from planner.bench.pays import Pair, hottest_on_all, made_up
from planner.engines import REARRANGED_BYTES_PER_S
from planner.model import ModelSpec, find_model
from planner.problem import Problem, Workload, violations
from planner.report.bench import bench_tables


@pytest.fixture
def few_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of the threads, four layers each."""

    def shortened(name: str) -> ModelSpec:
        known = find_model(name)
        layers = known.moe_layer_ids[:4]
        return replace(known, layers=layers[-1] + 1, moe_layer_ids=layers, draft_layer_ids=(), body=None)

    monkeypatch.setattr(study, "find_model", shortened)


@pytest.mark.parametrize("case", [study.atom_1210, study.sglang_19772])
@pytest.mark.usefixtures("few_layers")
def test_the_sign_of_a_thread_comes_out(case: Any) -> None:
    """Layers do not know of each other, so four of them have the signs of all."""
    for name, pair in case():
        assert pair.agrees, (name, pair)


def test_a_map_made_offline_beats_online_balancing_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all layers, for a gain of few would drown in what the engine takes of every step.

    In decode alone experts wait for their weights whatever their load, and only the stop is left.
    """
    monkeypatch.setattr(study, "WINDOWS", 3)
    pairs = [pair for _, pair in study.vllm_41141()]
    assert all(pair.agrees for pair in pairs if "prefill" in pair.rests_on), pairs
    decode = {pair.change: pair.predicted for pair in pairs if "decode" in pair.rests_on}
    assert decode["none -> online EPLB"] < decode["none -> map made offline"] == pytest.approx(1, abs=0.01)


def test_what_kimi_k3_lost_follows_from_its_weights() -> None:
    """A rearrangement of 92 layers takes longer than the whole gain of perfect balance in the 19.3 s between
    two of them: 1.069 on the busiest rank is all that could be had.
    """
    model, ranks = find_model("kimi-k3"), 16
    received = len(model.moe_layer_ids) * model.experts / ranks * (1 - 1 / ranks) * model.expert_bytes
    stall_seconds = received / REARRANGED_BYTES_PER_S
    between_seconds = 463.11 / 24
    assert stall_seconds > between_seconds * (1.069 - 1) * 2
    assert stall_seconds < (1466.5 - 463.11) / 24  # what was lost each time: the prediction is too kind


def test_a_row_for_each_change_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair("none -> some", 1.1, 1.002, "all of it")
    monkeypatch.setattr(study, "CASES", (lambda: [("a thread", pair)],))
    monkeypatch.setattr(study.CASES[0], "__name__", "thread")
    table = study.run(Peers(), 1, None)
    assert table.rows[0]["recorded_share"] == pytest.approx(0.1)
    assert not table.rows[0]["same_sign"]
    bench_tables({"pays": table})


@pytest.mark.parametrize(
    ("recorded", "predicted", "agrees"),
    [(1.2, 1.02, True), (0.3, 0.9, True), (1.2, 0.9, False), (1.2, 1.0, False)],
)
def test_signs(recorded: float, predicted: float, *, agrees: bool) -> None:
    assert Pair("", recorded, predicted, "").agrees is agrees


def test_the_load_is_as_uneven_as_recorded() -> None:
    model, topology = synthetic_model("made up", 6, 64, 8, hidden=64, expert_intermediate=64), eight_mi355()
    for sigma_of, of in ((study._sigma_by_layer, 1), (study._sigma_over_layers, 0)):
        share_LE = made_up(model, sigma_of(model, topology, 1.069)).shares_LE
        load_LG = share_LE.reshape(6, 8, 8).sum(axis=2)
        reached = load_LG.max(axis=1).sum() / 6 * 8 if of else load_LG.sum(axis=0).max() / 6 * 8
        assert reached == pytest.approx(1.069, abs=1e-3)


def test_the_hottest_experts_are_on_every_gpu() -> None:
    """16 replicas on 8 GPUs: two experts on all, and two replicas of the next ones."""
    model = synthetic_model("made up", 2, 32, 4, hidden=64, expert_intermediate=64)
    load = made_up(model, 1.0)
    problem = Problem(eight_mi355(), model, load, Workload(transport="rank"), 6)
    placement = hottest_on_all(problem, load.shares_LE)
    assert not violations(problem, placement)
    replicas_LE = placement.replicas_LE(32)
    assert (np.sort(replicas_LE, axis=1)[:, -4:] == [2, 2, 8, 8]).all()
    assert (replicas_LE[np.arange(2), load.shares_LE.argmax(axis=1)] == 8).all()
