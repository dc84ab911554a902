"""GPUs of unequal speed.

Given as text or in a machine's file, they count in cost, bound, and what the methods do.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from planner.bounds import load_bound
from planner.cost import constants_of, cost
from planner.planning import PlanRequest, answer
from planner.solvers import find_method, peaks
from planner.topology import read_speeds, read_topology, topology_from_dict
from tests.planner.engines.examples import machine
from tests.planner.small import BEST_ROW, every_row, placed, question, two_nodes


@pytest.mark.parametrize(
    ("name", "text"),
    [("s.yaml", "{1: 0.9, 3: 0.5}"), ("s.json", '{"1": 0.9, "3": 0.5}'), ("s.json", "[1.0, 0.9, 1, 0.5]")],
)
def test_a_file_of_speeds(tmp_path: Path, name: str, text: str) -> None:
    """Ranks with factors, or one factor a rank."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    speeds = read_speeds(str(tmp_path / name), 4)
    assert {rank: speed for rank, speed in speeds.items() if speed != 1} == {1: 0.9, 3: 0.5}


@pytest.mark.parametrize(
    "text", ["", "3", "3=x", "x=0.9", "3=0.9,3=0.8", "3=0.9,03=0.8", "3=0.9;4=1", "1.5=0.9"]
)
def test_slips_of_the_pen_are_refused(text: str) -> None:
    """In one line that shows how it is written."""
    with pytest.raises(BadInput, match="--gpu-speed") as caught:
        read_speeds(text, 4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", "{1: fast}"),
        ("s.yaml", "{1: true}"),
        ("s.json", "3"),
        ("s.json", "[null]"),
        ("s.json", "[1, 1, 1]"),
        ("s.json", "[1, 1, 1, 1, 1]"),
        ("s.json", '{"1": 1, "01": 2}'),
        ("s.yaml", "{0: [1]}"),
    ],
)
def test_a_file_that_holds_no_speeds_is_refused(tmp_path: Path, name: str, text: str) -> None:
    """It names the file."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=name):
        read_speeds(str(tmp_path / name), 4)


def test_a_machine_says_its_speeds() -> None:
    """By rank, back from plain data, and through a cut to fewer GPUs; nominal speeds leave no trace."""
    slow = two_nodes().with_speeds({1: 0.5, 2: 2.0})
    assert slow.speed_G.tolist() == [1, 0.5, 2, 1]
    again = topology_from_dict(slow.to_dict())
    assert (again, again.digest()) == (slow, slow.digest())
    assert slow.select(2, 1).speed_G.tolist() == [1, 2]
    assert two_nodes().with_speeds({0: 1.0}) == two_nodes()
    assert slow.with_speeds({1: 1.0, 2: 1.0}) == two_nodes()


@pytest.mark.parametrize(
    ("speed", "words"),
    [
        (0, "'speed' is 0; expected a number above 0, at most 100"),
        (-1, "'speed' is -1"),
        (math.nan, "'speed' is nan"),
        (101, "'speed' is 101"),
        ([1, 1, 0.5], "3 speeds for 2"),
        ("x", "'x'"),
    ],
)
def test_a_machine_with_an_impossible_speed_is_refused(speed: object, words: str) -> None:
    """The line says which GPU or how many."""
    data = two_nodes().to_dict()
    data["nodes"][0]["speed"] = speed
    with pytest.raises(BadInput, match=words):
        topology_from_dict(data)


def test_a_rank_that_there_is_not_is_refused() -> None:
    """GPUs count from 0."""
    with pytest.raises(BadInput, match="GPU 4; its GPUs are 0 to 3"):
        two_nodes().with_speeds({4: 0.9})


def test_half_the_speed_is_twice_the_compute() -> None:
    """All but the fixed part.

    The busiest GPU is the one that is busy longest, and a perfect balance counts speeds.
    """
    even = question()
    slow = replace(even, topology=even.topology.with_speeds({1: 0.5}))
    before, after = cost(even, placed(BEST_ROW, even)), cost(slow, placed(BEST_ROW, slow))
    fixed_seconds = constants_of(even).compute.fixed_seconds
    assert after.compute_seconds_L - fixed_seconds == pytest.approx(
        2 * (before.compute_seconds_L - fixed_seconds)
    )
    assert after.dispatch_seconds_L.tolist() == before.dispatch_seconds_L.tolist()
    assert after.max_over_mean == pytest.approx(600 / 0.5 / (2400 / 3.5))


def test_equally_slow_gpus_are_alike() -> None:
    """Balance does not know of it, seconds do."""
    even = question()
    slow = replace(even, topology=even.topology.with_speeds(dict.fromkeys(range(4), 0.5)))
    assert slow.speed_G is None
    assert (
        cost(slow, placed(BEST_ROW, slow)).compute_seconds_L[0]
        > cost(even, placed(BEST_ROW, even)).compute_seconds_L[0]
    )


@given(
    st.lists(st.integers(0, 30), min_size=2, max_size=4),
    st.sampled_from([2, 3]),
    st.integers(1, 2),
    st.integers(0, 2**32 - 1),
)
def test_the_bound_holds_for_every_placement(
    counts: list[int], gpus: int, slots_per_gpu: int, seed: int
) -> None:
    """Brute force: no placement's busiest GPU, by load over speed, is below it."""
    experts = len(counts)
    slots_per_gpu = min(max(slots_per_gpu, -(-experts // gpus)), experts)
    speed_G = np.random.default_rng(seed).uniform(0.2, 1, gpus)
    speed_G /= speed_G.max()
    load_LE = np.array([counts], dtype=np.float64)
    rows_NP = every_row(experts, gpus, slots_per_gpu).reshape(-1, gpus * slots_per_gpu)
    best = peaks(np.repeat(load_LE, len(rows_NP), axis=0), rows_NP, gpus, speed_G).min()
    for even in (True, False):
        assert (
            load_bound(load_LE, gpus, slots_per_gpu, even=even, speed_G=speed_G).load_L[0]
            <= best * (1 + 1e-9) + 1e-12
        )


@pytest.mark.parametrize("method", ["refine", "cpsat"])
def test_a_slow_gpu_gets_less(method: str) -> None:
    """64 experts of mixed load on 8 GPUs, one at 0.7 of the speed.

    Close to perfect balance by speed, which the linear layout is far from.
    """
    counts = (np.random.default_rng(1).lognormal(0, 1, 64) * 1000).astype(np.int64)
    problem = question(counts, machine(8).with_speeds({3: 0.7}), 10)
    found = cost(problem, find_method(method)(problem))
    assert found.max_over_mean < 1.01
    assert found.load_LG[0, 3] / np.delete(found.load_LG[0], 3).mean() == pytest.approx(0.7, rel=0.02)
    assert cost(problem, find_method("linear")(problem)).max_over_mean > 1.3


def test_a_gpu_too_slow_for_its_slots_is_told_by_the_bound() -> None:
    """16 equal experts on 4 GPUs, 5 slots each.

    At half speed a GPU cannot hold less than 4 halves and one whole, which is 6 beside the mean of 4.57.
    """
    problem = question([10] * 16, machine(4).with_speeds({0: 0.5}), 5)
    bound = load_bound(problem.shares_LE, 4, 5, even=True, speed_G=problem.speed_G)
    assert bound.reason_L == ("slow GPU",)
    assert bound.load_L[0] * 16 == pytest.approx(6)
    assert cost(problem, find_method("refine")(problem)).busy_LG.max() / 2400 * 16 == pytest.approx(6)


def test_solve_takes_speeds_and_the_plan_keeps_them() -> None:
    """As a flag; the topology in the plan has them, and the gap is against the bound by speed."""
    plan = answer(
        PlanRequest(
            "deepseek-v2-lite", topology="hgx-h100:2x2", redundant=16, method="refine", gpu_speed="0=0.5"
        )
    )
    assert plan.problem.topology.speed_G.tolist() == [0.5, 1, 1, 1]
    assert 0 <= plan.gap < 1e-9  # an even load: the slow GPU holds as many halves as there are
    with pytest.raises(BadInput, match="its GPUs are 0 to 3"):
        answer(PlanRequest("deepseek-v2-lite", topology="hgx-h100:2x2", method="linear", gpu_speed="4=0.5"))


def test_gpu_models_of_unequal_peak_count_as_unequal() -> None:
    """Two H100 nodes beside two A100 nodes: an A100 GPU gets about 312 / 989 of the load."""
    fast, slow = read_topology("hgx-h100:1x4"), read_topology("hgx-a100:1x4")
    mixed = replace(fast, nodes=(*fast.nodes, *slow.nodes))
    problem = question([100] * 64, mixed, 10)
    assert problem.speed_G is not None
    assert problem.speed_G[4] == pytest.approx(
        slow.gpus[0].model.peak_flops_per_s("bf16") / fast.gpus[0].model.peak_flops_per_s("bf16")
    )
