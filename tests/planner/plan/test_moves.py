"""What changes between two placements: slots, senders, waves, seconds; the transfers lead there."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.placement import Placement
from planner.plan import aligned, moves_L, plan_moves, steps_to_pay
from planner.plan.moves import replayed
from planner.plan.moves_to_dict import moves_to_dict
from planner.plan.transfers import Transfers, transfers
from planner.plan.waves import waves
from planner.problem import Problem
from planner.solvers import find_method
from tests.planner.small import question, two_nodes
from tests.strategies import problem_of, problems


def placed(*rows: list[int], gpus: int = 4) -> Placement:
    return Placement(np.array(rows), tuple(range(len(rows))), gpus)


def shuffled(problem: Problem, seed: int) -> Placement:
    """A valid placement that no method would choose: the cyclic one, with GPUs and experts renamed layer by
    layer.
    """
    random = np.random.default_rng(seed)
    linear_LP = find_method("linear")(problem).expert_LP
    rows = [
        random.permutation(problem.model.experts)[row]
        .reshape(problem.gpus, -1)[random.permutation(problem.gpus)]
        .ravel()
        for row in linear_LP
    ]
    return Placement(np.array(rows), problem.model.placed_layer_ids, problem.gpus)


def test_experts_that_stay_keep_their_slot() -> None:
    """Only slots whose expert was not on the GPU differ; the order of a GPU's experts alone is no move."""
    old, new = placed([3, 0, 1, 2], [2, 1, 0, 3], gpus=2), placed([0, 1, 2, 3], [1, 2, 0, 3], gpus=2)
    assert aligned(old, new).expert_LP.tolist() == [[1, 0, 3, 2], [2, 1, 0, 3]]
    assert moves_L(old, new).tolist() == [2, 0]


@given(problem=problems(), seed=st.integers(0, 9))
def test_alignment_changes_no_gpus_content(problem: Problem, seed: int) -> None:
    """Each GPU holds what it held in the new placement, and as many slots differ as experts are new to their
    GPU, counted one by one.
    """
    old, new = shuffled(problem, seed), find_method("greedy")(problem)
    found = aligned(old, new)
    contents = [
        placement.expert_LP.reshape(-1, placement.slots_per_gpu).tolist() for placement in (old, new, found)
    ]
    assert [sorted(gpu) for gpu in contents[1]] == [sorted(gpu) for gpu in contents[2]]
    assert moves_L(old, new).sum() == sum(
        len(set(after) - set(before)) for before, after in zip(contents[0], contents[1], strict=True)
    )


@given(problem=problems(), seed=st.integers(0, 9))
def test_transfers_lead_from_one_placement_to_the_next(problem: Problem, seed: int) -> None:
    """Replayed they give the new placement; every sender held the expert before; no GPU sends to itself."""
    old = shuffled(problem, seed)
    new = aligned(old, find_method("greedy")(problem))
    found = transfers(problem.topology, old, new)
    assert replayed(old, found).expert_LP.tolist() == new.expert_LP.tolist()
    assert (found.target_T == old.gpu_P[found.slot_T]).all()
    assert (found.source_T != found.target_T).all()
    for row, expert, source in zip(found.row_T, found.expert_T, found.source_T, strict=True):
        assert expert in old.expert_LP[row].reshape(old.gpus, -1)[source]


@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=60))
def test_every_wave_is_a_matching_and_none_could_be_spared(pairs: list[tuple[int, int]]) -> None:
    """For any transfers between six GPUs: no GPU sends or receives twice in a wave, and there are as many
    waves as the busiest end has transfers.
    """
    source_T, target_T = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    wave_T = waves(source_T, target_T, 6)
    for side_T in (source_T, target_T):
        assert len(set(zip(wave_T.tolist(), side_T.tolist(), strict=True))) == len(pairs)
    busiest = max([*Counter(source_T.tolist()).values(), *Counter(target_T.tolist()).values()], default=0)
    assert len(set(wave_T.tolist())) == busiest


def test_waves_where_taking_the_first_free_one_fails() -> None:
    """The third and fourth transfers take waves 1 and 0; the last then finds none of the two free at both of
    its ends, and a path changes places.
    """
    source_T, target_T = np.array([0, 1, 0, 2, 2]), np.array([0, 0, 1, 2, 1])
    wave_T = waves(source_T, target_T, 3)
    assert set(wave_T.tolist()) == {0, 1}
    for side_T in (source_T, target_T):
        assert len(set(zip(wave_T.tolist(), side_T.tolist(), strict=True))) == 5


def test_the_sender_is_near_and_has_sent_least() -> None:
    """Expert 0 is on GPUs 0 and 2: GPU 1 takes it from its own node.

    Expert 1 is far, on GPUs 0 and 1: GPU 3 takes it from the one that sent less.
    """
    old = placed([0, 1, 1, 2, 0, 2, 3, 2])
    found = transfers(two_nodes(), old, placed([0, 1, 1, 0, 0, 2, 3, 1]))
    assert list(
        zip(found.expert_T.tolist(), found.source_T.tolist(), found.target_T.tolist(), strict=True)
    ) == [(0, 0, 1), (1, 1, 3)]


def test_seconds_by_hand() -> None:
    """An expert of 2,976,000 bytes: 7.44 us over NVLink (400 GB/s), 59.52 us over a NIC (50 GB/s).

    GPU 0 receives one of each: two waves.
    """
    problem = question()
    old, new = placed([0, 2, 1, 3, 0, 2, 1, 3]), placed([0, 1, 1, 3, 0, 2, 1, 3])
    assert problem.model.expert_bytes == 2_976_000
    moves = plan_moves(problem, old, new, "before.json")
    assert moves.seconds == pytest.approx(7.44e-6)
    far = plan_moves(
        problem, placed([0, 2, 1, 3, 0, 2, 1, 3]), placed([0, 2, 1, 3, 0, 2, 1, 0]), "before.json"
    )
    assert far.seconds == pytest.approx(7.44e-6)
    across = plan_moves(
        problem, placed([0, 2, 1, 2, 0, 3, 1, 3]), placed([0, 3, 1, 2, 0, 3, 1, 3]), "before.json"
    )
    assert across.seconds == pytest.approx(59.52e-6)
    assert (across.total_bytes, across.share, across.transfers.waves) == (2_976_000, 1 / 8, 1)


def test_nothing_to_move_takes_nothing() -> None:
    """No waves, no bytes, no seconds; and it never pays."""
    problem, same = question(), placed([0, 2, 1, 3, 0, 2, 1, 3])
    moves = plan_moves(problem, same, same, "before.json", 0)
    assert (moves.seconds, moves.total_bytes, moves.most_received_bytes, moves.transfers.waves) == (
        0,
        0,
        0,
        0,
    )
    assert steps_to_pay(moves, 0.0) is None


def test_moves_pay_after_their_seconds_over_what_a_step_saves() -> None:
    """59.52 us at 10 us a step: 6 steps. Nothing saved, or less than nothing: never."""
    problem = question()
    moves = plan_moves(
        problem, placed([0, 2, 1, 2, 0, 3, 1, 3]), placed([0, 3, 1, 2, 0, 3, 1, 3]), "before.json"
    )
    assert steps_to_pay(moves, 10e-6) == 6
    assert steps_to_pay(moves, -1e-6) is None
    value = moves_to_dict(moves, 10e-6)
    assert value["steps_to_pay"] == 6
    assert dict(zip(value["columns"], value["transfers"][0], strict=True)) == {
        "wave": 0,
        "layer": 0,
        "expert": 3,
        "source": 2,
        "target": 0,
        "slot": 1,
    }


def test_transfers_count_their_waves() -> None:
    """None for no transfer."""
    none = np.zeros(0, dtype=np.int64)
    assert Transfers(none, none, none, none, none, none).waves == 0


def test_many_transfers_in_as_few_waves() -> None:
    """A whole re-plan of 4 layers on 16 GPUs: a valid schedule at the least number of waves."""
    problem = problem_of(
        np.random.default_rng(0).integers(1, 1000, (4, 64)).tolist(), gpus=16, slots_per_gpu=5
    )
    old = shuffled(problem, 1)
    found = transfers(problem.topology, old, aligned(old, find_method("greedy")(problem)))
    busiest = max(np.bincount(found.source_T).max(), np.bincount(found.target_T).max())
    assert len(found) > 200
    assert found.waves == busiest
