"""The pieces of the bounds in seconds, each against trying everything."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.bounds.picks import (
    convex,
    least_convex_total,
    least_total,
    messages_E,
    messages_of_trace_XE,
    touched_slots,
)
from planner.bounds.time import parts_CC
from planner.cost import Routing, messages_GG
from planner.problem import Problem
from planner.replica import find_rule
from tests.planner.small import placed, question, random_row
from tests.strategies import cluster

tables = st.integers(1, 4).flatmap(
    lambda counts: st.lists(
        st.lists(st.integers(0, 30), min_size=counts, max_size=counts), min_size=1, max_size=4
    )
)


def least_by_trying(value_EC: np.ndarray, extra: int) -> float:
    """Over every choice of counts that exceed one each by `extra` in all."""
    experts, counts = value_EC.shape
    chosen = [row for row in product(range(counts), repeat=experts) if sum(row) == extra]
    return float(min(value_EC[np.arange(experts), list(row)].sum() for row in chosen))


@given(table=tables, data=st.data())
def test_least_total_is_below_every_choice(table: list[list[int]], data: st.DataObject) -> None:
    """A price for replicas never bounds too high, nor too low by more than one expert's table."""
    value_EC = np.array(table, dtype=float)
    extra = data.draw(st.integers(0, value_EC.shape[0] * (value_EC.shape[1] - 1)))
    found, least = least_total(value_EC, extra), least_by_trying(value_EC, extra)
    assert found <= least + 1e-9
    assert found >= least - np.ptp(value_EC, axis=1).max() - 1e-9


@given(
    weights=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    falls=st.lists(st.integers(0, 9), max_size=3),
    data=st.data(),
)
def test_convex_tolls_are_shared_exactly(weights: list[int], falls: list[int], data: st.DataObject) -> None:
    """Savings that shrink with the count: taking the largest is the best choice of counts."""
    toll_C = 40 - np.cumsum([0, *sorted(falls, reverse=True)], dtype=float)
    weight_E = np.array(weights, dtype=float)
    extra = data.draw(st.integers(0, len(weights) * len(falls)))
    least = least_by_trying(weight_E[:, None] * toll_C, extra)
    assert least_convex_total([(weight_E, toll_C)], extra) == pytest.approx(least)


@given(toll=st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_the_convex_table_is_below_and_convex(toll: list[int]) -> None:
    """Nowhere above, slopes that never fall, ends kept."""
    toll_C = np.array(toll, dtype=float)
    found_C = convex(toll_C)
    assert (found_C <= toll_C + 1e-9).all()
    assert (np.diff(found_C, n=2) >= -1e-9).all()
    assert (found_C[0], found_C[-1]) == (toll_C[0], toll_C[-1])


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 50), min_size=4, max_size=7),
    top_k=st.integers(1, 4),
    slots=st.integers(1, 4),
)
def test_a_place_gets_no_fewer_messages_than_its_experts_stand_for(
    counts: list[int], top_k: int, slots: int
) -> None:
    """Any set of experts on the second of two GPUs: messages to it, as traffic counts them, against the sum
    over its experts.
    """
    experts = len(counts)
    if not any(counts):
        counts[0] = 1
    for held in combinations(range(experts), min(slots, experts)):
        rest = [expert for expert in range(experts) if expert not in held]
        row_P = np.array(
            [
                *(rest + list(held))[: max(len(rest), len(held))],
                *(list(held) + rest)[: max(len(rest), len(held))],
            ]
        )
        problem = question(
            counts, cluster(1, 2), len(row_P) // 2, "even", top_k=top_k, transport="rank", tokens_per_rank=1
        )
        share_SP = next(iter(find_rule("even")(placed(row_P, problem), problem.situation())))
        sent_GG = messages_GG(problem, Routing(problem.shares_LE[0], share_SP, row_P))
        least_E = messages_E(problem.shares_LE[0], top_k, problem.slots_per_gpu)
        here_E = np.bincount(row_P[len(row_P) // 2 :], share_SP[0][len(row_P) // 2 :], experts)
        assert sent_GG[0, 1] >= (least_E * here_E).sum() - 1e-9


@given(seed=st.integers(0, 1000), top_k=st.integers(1, 4), slots=st.integers(1, 4))
def test_traced_picks_stand_for_no_more_messages_than_are_sent(seed: int, top_k: int, slots: int) -> None:
    """Every set of experts that fits a place: tokens that hit it, counted, against the sum over the set."""
    drawn = np.random.default_rng(seed)
    experts_TK = np.array([drawn.permutation(6)[:top_k] for _ in range(20)])
    (least_E,) = messages_of_trace_XE(experts_TK, 6, (slots,))
    for held in combinations(range(6), slots):
        hits = np.isin(experts_TK, held).any(axis=1).mean()
        assert least_E[list(held)].sum() <= hits + 1e-9


def test_picks_that_never_meet_are_a_message_each() -> None:
    """One slot a place, or top-1: as many messages as picks.

    Two experts that always meet in two slots: half.
    """
    one_E, two_E = messages_of_trace_XE(np.array([[0, 1], [0, 1]]), 2, (1, 2))
    assert one_E.tolist() == [1, 1]
    assert two_E.tolist() == [0.5, 0.5]
    assert messages_E(np.array([0.75, 0.25]), 1, 2) == pytest.approx([0.75, 0.25])


@given(seed=st.integers(0, 1000), rule=st.sampled_from(["even", "nearest", "hashed"]))
def test_touched_slots_are_no_fewer_than_bounded(seed: int, rule: str) -> None:
    """A random placement of six experts in twelve slots, by the shares of its rule."""
    drawn = np.random.default_rng(seed)
    counts = drawn.integers(1, 20, 6)
    problem: Problem = question(counts, slots_per_gpu=3, rule=rule, tokens_per_rank=int(drawn.integers(1, 6)))
    row_P = random_row(drawn, 6, 4, 3)
    share_SP = next(iter(find_rule(rule)(placed(row_P, problem), problem.situation())))
    received_P = (
        problem.workload.tokens_per_rank
        * problem.shares_LE[0][row_P]
        * share_SP.sum(axis=0)
        * (4 if len(share_SP) == 1 else 1)
    )
    sent_E = 4 * problem.workload.tokens_per_rank * problem.shares_LE[0]
    assert touched_slots(sent_E, parts_CC(problem), problem.redundant) <= -np.expm1(-received_P).sum() + 1e-9
