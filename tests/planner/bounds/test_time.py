"""Bounds in seconds: below every placement of tiny questions for each rule and transport.

They are tight where an argument is exact, and plain in what they say.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bounds import PARTS, time_bound
from planner.bounds.time import bound_over_windows, parts_CC
from planner.cost import constants_of
from planner.load import LoadProfile
from planner.problem import TRANSPORTS, Problem
from planner.replica.registry import RULES
from planner.topology import read_topology
from tests.planner.small import question, two_nodes
from tests.planner.tiny import MACHINES, price_all, tiny_problem

ROUNDING = 1 + 1e-9


def start_seconds(problem: Problem) -> float:
    """Start-up of dispatch."""
    return constants_of(problem).dispatch.start_seconds(problem.gpus, problem.slots_per_gpu)


START = start_seconds(question())


def assert_below_all(problem: Problem) -> None:
    """Each part's bound is no more than the least that any placement takes for that part."""
    found, bound = price_all(problem), time_bound(problem)
    for part in PARTS:
        least = getattr(found, f"{part}_seconds_L").min()
        assert getattr(bound, f"{part}_seconds_L")[0] <= least * ROUNDING, (
            part,
            getattr(bound, f"{part}_reason_L"),
        )


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("rule", RULES)
def test_no_placement_is_below(rule: str, transport: str) -> None:
    """Three and four experts on 2 x 2 GPUs, R = 0 and 1: all placements, with and without a trace, few tokens
    and many, three machines.
    """
    drawn = np.random.default_rng(7)
    for experts in (3, 4):
        for top_k, traced_tokens in ((1, 0), (2, 0), (2, 12), (3, 12)):
            machine, tokens, seed = (
                drawn.choice(list(MACHINES)),
                int(drawn.choice([1, 4, 64, 2000])),
                int(drawn.integers(1000)),
            )
            assert_below_all(
                tiny_problem(machine, experts, 1, top_k, rule, transport, tokens, traced_tokens, seed)
            )


@pytest.mark.parametrize(
    ("rule", "transport", "tokens", "traced_tokens"),
    [
        ("even", "slot", 2000, 0), ("even", "node", 4, 12),
        ("even", "node", 2000, 0), ("even", "rank", 2000, 0),
        ("nearest", "slot", 2000, 0), ("nearest", "node", 4, 12),
        ("nearest", "node", 2000, 0), ("nearest", "rank", 2000, 0),
        ("hashed", "node", 50, 0), ("fixed-by-source", "slot", 2000, 0),
        ("round-robin", "rank", 3, 0), ("round-robin", "slot", 1, 0),
    ],
)  # fmt: skip
def test_no_placement_is_below_with_many_replicas(
    rule: str, transport: str, tokens: int, traced_tokens: int
) -> None:
    """Four experts, R = 4: all 978 placements."""
    assert_below_all(tiny_problem("two-nodes", 4, 2, 2, rule, transport, tokens, traced_tokens, seed=3))


@settings(max_examples=6)
@given(
    rule=st.sampled_from([name for name in RULES if name != "lp"]),
    transport=st.sampled_from(list(TRANSPORTS)),
    tokens=st.integers(1, 5000),
    seed=st.integers(0, 10_000), data=st.data(),
)  # fmt: skip
def test_no_random_placement_is_below(
    rule: str, transport: str, tokens: int, seed: int, data: st.DataObject
) -> None:
    """Six experts in twelve slots, R = 6: 100 random placements."""
    problem = tiny_problem(
        data.draw(st.sampled_from(list(MACHINES))),
        6,
        3,
        data.draw(st.integers(1, 4)),
        rule,
        transport,
        tokens,
        0,
        seed,
    )
    drawn = np.random.default_rng(seed)
    rows: list[np.ndarray] = []
    while len(rows) < 100:
        row_P = np.concatenate([np.sort(drawn.permutation(6)[:3]) for _ in range(4)])
        rows += [row_P] if len(set(row_P.tolist())) == 6 else []
    found, bound = price_all(problem, np.array(rows)), time_bound(problem)
    for part in PARTS:
        assert getattr(bound, f"{part}_seconds_L")[0] <= getattr(found, f"{part}_seconds_L").min() * ROUNDING


@pytest.mark.parametrize(
    ("rule", "transport"), [("even", "slot"), ("nearest", "slot"), ("even", "allgather")]
)
def test_the_hand_solved_question_is_bounded_tightly(rule: str, transport: str) -> None:
    """The best plan of tests/data/two-nodes.yaml is within 2 % of its bound under each rule: what it sends
    and computes cannot be had for less.
    """
    problem = question(topology=two_nodes("measured"), rule=rule, transport=transport)
    assert price_all(problem).layer_seconds_L.min() <= 1.02 * time_bound(problem).layer_seconds_L[0]


def test_even_shares_cross_nodes_by_chance_and_cannot_less() -> None:
    """Half of 600 tokens of each of four ranks go to the other node, over four NICs of 50 GB/s: 12 us, as the
    best plan takes.
    """
    bound = time_bound(question(topology=two_nodes("measured")))
    assert bound.dispatch_reason_L == ("all nic in",)
    assert bound.dispatch_seconds_L[0] - START == pytest.approx(12e-6)


def test_spare_slots_go_to_the_hottest_under_nearest() -> None:
    """Six experts of load 5 : 1 : 1 : 1 : 1 : 1 and two spare slots.

    Half of all would cross; the hot one on both nodes saves 1/4, a cold one 1/20.
    1/5 of 2400 messages of 2000 bytes over four NICs of 50 GB/s: 4.8 us.
    """
    bound = time_bound(question([5, 1, 1, 1, 1, 1], two_nodes("measured"), 2, "nearest"))
    assert bound.dispatch_seconds_L[0] - START == pytest.approx(4.8e-6)


@pytest.mark.parametrize("rule", ["even", "nearest"])
def test_some_node_has_its_share_of_the_picks(rule: str) -> None:
    """Eight experts, R = 0, top-2, transport `node`: one of the two nodes has one of two picks at least, and
    3 of 4 tokens of the other send to it.
    """
    counts = [3, 3, 1, 1, 1, 1, 1, 1]
    problem = question(counts, two_nodes("measured"), 2, rule, top_k=2, transport="node")
    bound = time_bound(problem)
    assert bound.dispatch_reason_L == ("busiest unit",)
    message_bytes = 2016  # 1984 and 8 + 8 · 2, rounded up to 16
    assert bound.dispatch_seconds_L[0] - start_seconds(problem) == pytest.approx(
        600 * 3 / 4 * message_bytes / 50e9
    )


def test_a_trace_whose_experts_never_meet_needs_a_message_each() -> None:
    """Tokens choose 0 and 1 or 2 and 3, with two slots a GPU: one message may do.

    Where experts meet at random more are needed.
    """
    together, mixed = [[0, 1], [2, 3]] * 6, [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]] * 2
    bounds = [
        time_bound(question([1] * 4, None, 2, "even", traced, 2, transport="rank")).dispatch_seconds_L[0]
        for traced in (together, mixed)
    ]
    assert bounds[0] < bounds[1]


def test_replicas_that_share_are_read_more() -> None:
    """One token a rank: under `even` a second replica is another slot that may be touched; a rule that may
    use one replica alone has no such bound.
    """
    even, hashed = (
        parts_CC(question(slots_per_gpu=2, rule=rule, tokens_per_rank=1)) for rule in ("even", "hashed")
    )
    assert [part.tolist() for part in even[:2]] == [[1.0], [0.5, 0.5]]
    assert [part.tolist() for part in hashed[:2]] == [[1.0], [1.0, 0.0]]


def test_windows_are_bounded_together() -> None:
    """The mean over windows is no less than the mean of their bounds, the worst no less than the largest:
    over all placements of two windows.
    """
    windows = [tiny_problem(experts=4, slots_per_gpu=1, seed=seed) for seed in (1, 2)]
    seconds_WN = np.array([price_all(window).layer_seconds_L for window in windows])
    bounds = [time_bound(windows[0], window.load) for window in windows]
    assert bound_over_windows(bounds)[0] <= seconds_WN.mean(axis=0).min() * ROUNDING
    assert bound_over_windows(bounds, worst=True)[0] <= seconds_WN.max(axis=0).min() * ROUNDING
    assert bound_over_windows(bounds)[0] < bound_over_windows(bounds, worst=True)[0]


def test_a_proven_load_raises_the_bound() -> None:
    """What a solver proved of the busiest GPU counts for compute; where sources are alike, for its links."""
    problem = question([4, 3, 3, 2, 2, 2, 1, 1], two_nodes(), 2, tokens_per_rank=20_000)
    plain, proven = time_bound(problem), time_bound(problem, peak_load_L=np.array([40_000.0]))
    assert proven.compute_seconds_L[0] > plain.compute_seconds_L[0]
    assert proven.dispatch_seconds_L[0] > plain.dispatch_seconds_L[0]
    assert proven.reason("compute") == proven.reason("dispatch") == "busiest GPU"


def test_one_gpu_sends_nothing() -> None:
    """No link, no bytes, no start-up."""
    bound = time_bound(question([3, 1], read_topology("hgx-h100:1x1"), 2))
    assert bound.dispatch_seconds_L[0] == bound.combine_seconds_L[0] == 0.0
    assert bound.dispatch_reason_L == ("none",)


def test_a_layer_without_load_is_bounded_as_even() -> None:
    """No signal is even load, as the cost has it."""
    silent, even = question([0, 0, 0, 0]), question([1, 1, 1, 1])
    assert time_bound(silent).layer_seconds_L.tolist() == time_bound(even).layer_seconds_L.tolist()


def test_layers_do_not_see_each_other() -> None:
    """A layer's bound is the same alone and beside another."""
    problem = question([6, 3, 2, 1], rule="nearest")
    model = replace(problem.model, layers=2, moe_layer_ids=(0, 1))
    load = LoadProfile(np.array([[[6, 3, 2, 1], [9, 0, 0, 1]]]), (0, 1), "made up for tests")
    together = time_bound(replace(problem, model=model, load=load)).layer_seconds_L
    assert together[0] == pytest.approx(time_bound(problem).layer_seconds_L[0], rel=1e-12)
