"""Counts that make DeepSeek's EPLB build a plan: exact where it can be steered, told where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import cost
from planner.engines.common.balancer import Ids, copies_of, deal, rebalanced
from planner.engines.common.count_table import count_table, longer_by, note
from planner.engines.common.steering import EXACT, steered_counts
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem import Problem
from tests.planner.engines.examples import TINY, machine, question, random_placement

PLAIN = replace(TINY, draft_layer_ids=())


def held(expert_P: Ids, gpus: int) -> list[list[int]]:
    found: list[list[int]] = np.sort(expert_P.reshape(gpus, -1), axis=1).tolist()
    return found


def made(counts_E: Ids, slots: int, gpus: int, groups: int = 1) -> Ids:
    """The balancer's row, where it has one."""
    row = rebalanced(counts_E, slots, gpus, groups)
    assert row is not None
    return row


def uneven(model: ModelSpec, gpus: int, redundant: int, nodes: int = 1) -> Problem:
    """A question about a load that is far from even."""
    draw = np.random.default_rng(3)
    counts = draw.integers(1, 10_000, (1, len(model.placed_layer_ids), model.experts))
    problem = question(model, machine(*(gpus // nodes,) * nodes), redundant)
    return replace(problem, load=LoadProfile(counts, model.placed_layer_ids, "made for tests"))


def test_the_balancer_by_hand() -> None:
    """80, 30, 20, 10 in six slots on two GPUs: expert 0 gets three copies of 26.7. 30 goes first, to GPU 0,
    the copies to 1, 1 and 0, then 20 to 1, which is full, and 10 to 0.
    """
    assert made(np.array([80, 30, 20, 10]), 6, 2).tolist() == [1, 0, 3, 0, 0, 2]


def test_the_balancer_deals_to_groups_first() -> None:
    """Four experts to two groups of one GPU: 9 and 1 against 8 and 7 would be unfair, so 9 and 1 it is only
    where the room is: 9 to the first, 8 and 7 to the second, 1 to the first.
    """
    assert made(np.array([9, 8, 7, 1]), 4, 2, groups=2).tolist() == [0, 3, 1, 2]


def test_what_hangs_on_the_order_of_equal_weights_has_no_answer() -> None:
    """Two experts of the same count, in either role: no sort promises which comes first."""
    assert rebalanced(np.array([5, 5, 3, 1]), 4, 2) is None
    assert rebalanced(np.array([5, 5, 3, 1]), 5, 1) is None
    replicas_E = copies_of(np.array([5.0, 4.0], dtype=np.float32), 4)
    assert replicas_E is not None
    assert replicas_E.tolist() == [2, 2]


def test_dealing_prefers_the_first_of_the_emptiest_with_room() -> None:
    """3 to the first of two empty packs, 2 and 1 to the second, which is then full."""
    assert deal([3, 2, 1, 1], np.zeros(2, np.float32), np.array([2, 2])) == [0, 1, 1, 0]


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.sampled_from([4, 8, 16]),
    more=st.integers(0, 4),
    hot=st.integers(1, 24),
    seed=st.integers(0, 10_000),
)
def test_any_plan_with_room_is_built(gpus: int, more: int, hot: int, seed: int) -> None:
    """Up to four replicas a GPU among 128 experts: the balancer's answer is the plan's, GPU for GPU."""
    model = replace(PLAIN, experts=128, layers=1, moe_layer_ids=(0,))
    redundant = min(more * gpus, hot * (gpus - 1))
    redundant -= redundant % gpus
    wanted_P = random_placement(model, gpus, redundant, seed, hot).expert_LP[0]
    counts_E = steered_counts(wanted_P, 128, gpus)
    if counts_E is None:  # one expert on nearly every GPU, in nearly every round: too few slots to lead
        assert more * gpus / hot > 3
        return
    assert counts_E.min() > 0
    assert counts_E.max() < EXACT
    assert held(made(counts_E, len(wanted_P), gpus), gpus) == held(wanted_P, gpus)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_without_replicas_even_the_order_of_slots_is_kept(groups: int) -> None:
    """A count for each place in turn: exact, with groups of GPUs too."""
    placement = random_placement(PLAIN, 8, 0)
    for wanted_P in placement.expert_LP:
        counts_E = steered_counts(wanted_P, PLAIN.experts, 8, groups)
        assert counts_E is not None
        assert made(counts_E, PLAIN.experts, 8, groups).tolist() == wanted_P.tolist()


def test_a_table_holds_every_decoder_layer_and_says_that_it_is_exact() -> None:
    """Dense layers have a row that nobody reads; draft layers have none, and are served as they were."""
    problem, placement = uneven(TINY, 8, 8), random_placement(TINY, 8, 8)
    table = count_table(placement, problem)
    rows = table.decoder_rows(TINY.layers)
    assert [len(row) for row in rows] == [TINY.experts] * 6
    assert rows[3:] == table.counts_LE[:3].tolist()
    assert not table.other
    assert table.served.expert_LP[3].tolist() == placement.expert_LP[3].tolist()
    assert "in all 3 MoE layers" in note("X", table, placement, problem, "even")


def test_where_the_balancer_cannot_be_steered_the_loss_is_told() -> None:
    """Two slots a GPU leave no room to lead: the load is balanced, and a step compared under the rule."""
    model = replace(PLAIN, experts=8, top_k=2, expert_groups=1, groups_per_token=1)
    problem, placement = uneven(model, 8, 8), random_placement(model, 8, 8)
    table = count_table(placement, problem)
    assert table.other == (3, 4, 5)
    for row in range(3):
        assert made(table.counts_LE[row], 16, 8).tolist() == table.served.expert_LP[row].tolist()
    asked = replace(problem, replica_rule="even")
    ratio = cost(asked, table.served).total_seconds / cost(asked, placement).total_seconds
    assert longer_by(placement, table.served, problem, "even") == pytest.approx(ratio - 1)
    told = note("X", table, placement, problem, "even")
    assert told.startswith("WARNING: X's own balancer builds the plan's placement in 0 of 3 MoE layers")
    assert f"{abs(ratio - 1):.1%}" in told


def test_replicas_across_groups_are_not_steered() -> None:
    """They stay inside a group there: the load is balanced, and every layer is named."""
    problem, placement = uneven(PLAIN, 16, 16, nodes=2), random_placement(PLAIN, 16, 16)
    assert count_table(placement, problem, groups=2).other == (3, 4, 5)
    assert not count_table(placement, problem).other


def test_a_load_of_equal_counts_has_an_answer_too() -> None:
    """They are set apart, so that no sort decides."""
    model = replace(PLAIN, experts=8, top_k=2, expert_groups=1, groups_per_token=1)
    table = count_table(random_placement(model, 8, 8), question(model, machine(8), 8))
    assert all(len(set(row)) == 8 for row in table.counts_LE.tolist())
