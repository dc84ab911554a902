"""Cost after a loss against the same question posed anew on the GPUs that are left."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.cost.lost
from planner.base import BadInput, Infeasible
from planner.cost import AfterLoss, Served, after_loss, cost, ledger, whole_step
from planner.cost.loss import one_loss
from planner.cost.lost import surviving_rows
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, Survival, loss_sets, violations
from planner.report.loss import coverage, gain_texts, loss_note
from planner.solvers import find_method
from tests.planner.small import random_row
from tests.strategies import problem_of, problems, survivals, surviving_problems


def anew(problem: Problem, placement: Placement, lost: tuple[int, ...]) -> tuple[Problem, Placement]:
    """The question on the GPUs left, with the rows they hold, made slot by slot."""
    left = [gpu for gpu in range(problem.gpus) if gpu not in lost]
    rows = [
        [
            expert
            for gpu in left
            for expert in row[gpu * problem.slots_per_gpu : (gpu + 1) * problem.slots_per_gpu]
        ]
        for row in placement.expert_LP.tolist()
    ]
    question = replace(problem, topology=problem.topology.without(lost), survive=None)
    return question, Placement(np.array(rows), placement.layer_ids, len(left))


def whole_seconds(problem: Problem, placement: Placement) -> float:
    return whole_step(problem, cost(problem, placement), None).total_seconds


@settings(max_examples=40)
@given(problem=surviving_problems(most_experts=6))
def test_worst_and_mean_are_those_of_every_loss(problem: Problem) -> None:
    """All losses of a small problem, one by one, under the rule that the plan is served by.

    No loss leaves a placement that the judge refuses.
    """
    assert problem.survive is not None
    placement = find_method("refine")(problem)
    found = after_loss(problem, placement, problem.survive)
    tokens = problem.workload.tokens_per_rank
    own, every = {}, {}
    for lost in loss_sets(problem.survive, problem.node_G):
        question, left = anew(problem, placement, lost)
        assert violations(question, left) == []
        more = replace(question.workload, tokens_per_rank=-(-tokens * problem.gpus // question.gpus))
        own[lost] = question.gpus * tokens / whole_seconds(question, left)
        every[lost] = problem.gpus * tokens / whole_seconds(replace(question, workload=more), left)
    assert found.exact
    assert found.losses == found.possible == len(own)
    assert found.before.total_seconds == cost(problem, placement).total_seconds
    for loss in (found.worst_balance, found.slowest):
        assert loss.lost_experts == 0
        assert loss.same_batch.tokens_per_s == pytest.approx(own[loss.gpus])
        assert loss.all_tokens.tokens_per_s == pytest.approx(every[loss.gpus])
    if found.timed == found.losses:
        assert found.slowest.same_batch.tokens_per_s == pytest.approx(min(own.values()))
        assert found.mean_same_batch_tokens_per_s == pytest.approx(np.mean(list(own.values())))
        assert found.mean_all_tokens_per_s == pytest.approx(np.mean(list(every.values())))


@settings(max_examples=60)
@given(
    problem=problems(most_experts=6, rules=("even", "nearest", "nearest-static", "hashed", "round-robin")),
    survive=survivals(),
    seed=st.integers(0, 99),
)
def test_a_loss_yields_less_or_says_why(problem: Problem, survive: Survival, seed: int) -> None:
    """Whatever the placement and the rule, surviving or not: tokens a second fall, or there is a reason."""
    if survive.losses >= int(survive.place_G(problem.node_G).max()) + 1:
        return  # nothing would be left
    draw = np.random.default_rng(seed)
    rows = [random_row(draw, problem.model.experts, problem.gpus, problem.slots_per_gpu)] * len(
        problem.model.placed_layer_ids
    )
    placement = Placement(np.array(rows), problem.model.placed_layer_ids, problem.gpus)
    for lost in loss_sets(survive, problem.node_G):
        if (problem.gpus - len(lost)) * problem.slots_per_gpu < problem.model.experts:
            with pytest.raises(Infeasible):
                one_loss(problem, placement, lost)
            continue
        before, loss = one_loss(problem, placement, lost)
        yields = max(loss.same_batch.tokens_per_s, loss.all_tokens.tokens_per_s)
        assert (yields < before.tokens_per_s) == (not loss.gain)
        assert (loss.lost_experts == 0) == survives_this(problem, placement, lost)


def survives_this(problem: Problem, placement: Placement, lost: tuple[int, ...]) -> bool:
    left = surviving_rows(placement, lost)
    return bool((left.replicas_LE(problem.model.experts) > 0).all())


def test_tokens_by_hand() -> None:
    """Four GPUs of 128 tokens lose one: 384 tokens with their own batch; all 512 are 171 a GPU, of which the
    one too many is none that anybody asked for.
    """
    problem = problem_of([[4, 3, 2, 1]], gpus=4, slots_per_gpu=2)
    placement = Placement(np.array([[0, 1, 2, 3, 0, 1, 2, 3]]), (0,), 4)
    before, loss = one_loss(problem, placement, (3,))
    tokens = [one.tokens_per_s * one.whole_seconds for one in (before, loss.same_batch, loss.all_tokens)]
    assert tokens == pytest.approx([512, 384, 512])
    assert (loss.same_batch.gpus, loss.all_tokens.tokens_per_rank) == (3, 171)


def with_memory(problem: Problem, memory_bytes: float, lost: tuple[int, ...] = ()) -> Problem:
    gpu = replace(problem.topology.gpus[0].model, memory_bytes=memory_bytes)
    node = replace(problem.topology.nodes[0], gpus=(gpu,) * problem.gpus)
    return replace(problem, topology=replace(problem.topology, nodes=(node,)).without(lost))


def test_requests_without_kv_cache_are_not_taken_on() -> None:
    """Half of four GPUs goes: those left have 256 requests to hold each, and memory for fewer."""
    problem = problem_of([[4, 3, 2, 1]], gpus=4, slots_per_gpu=4)
    more = replace(problem, workload=replace(problem.workload, tokens_per_rank=256))
    least, most = 0.0, 1e12
    while not 128 < (held := ledger(with_memory(more, (least + most) / 2, (2, 3)), None).requests) < 256:
        least, most = ((least + most) / 2, most) if held <= 128 else (least, (least + most) / 2)
    asked = with_memory(problem, (least + most) / 2)
    _, loss = one_loss(asked, Placement(np.array([[0, 1, 2, 3] * 4]), (0,), 4), (2, 3))
    assert (loss.all_tokens.tokens_per_rank, loss.unheld_requests) == (held, 2 * (256 - held))
    assert loss.all_tokens.tokens_per_s * loss.all_tokens.whole_seconds == pytest.approx(2 * held)


def test_gpus_that_share_attention_are_lost_together() -> None:
    """GPU 1 of groups of two: two GPUs are left, and the experts of GPU 0 are gone too."""
    problem = problem_of([[4, 3, 2, 1]], gpus=4, slots_per_gpu=2)
    problem = replace(problem, workload=replace(problem.workload, attention_tp=2))
    _, loss = one_loss(problem, Placement(np.array([[0, 1, 0, 2, 2, 3, 3, 2]]), (0,), 4), (1,))
    assert (loss.gpus, loss.same_batch.gpus, loss.lost_experts) == ((1,), 2, 2)


def test_a_cluster_that_is_faster_in_parts_is_said_to_be() -> None:
    """Two nodes with a NIC so slow that either alone serves more than both together."""
    problem = problem_of([[1] * 4], gpus=4, slots_per_gpu=4, nodes=2)
    slow = replace(problem.topology.nodes[0].nics[0].rate, bytes_per_s=1e3)
    nodes = tuple(
        replace(node, nics=tuple(replace(nic, rate=slow) for nic in node.nics))
        for node in problem.topology.nodes
    )
    problem = replace(problem, topology=replace(problem.topology, nodes=nodes), survive=Survival(node=True))
    placement = Placement(np.array([[0, 1, 2, 3] * 4]), (0,), 4)
    found = after_loss(problem, placement, Survival(node=True))
    assert found.slowest.same_batch.tokens_per_s > found.before.tokens_per_s
    assert "smaller groups of GPUs are faster here" in found.slowest.gain
    assert "50% of the assignments left their node, now 0%" in loss_note(found)
    assert gain_texts(found)[0] in loss_note(found)


def surviving_two(gpus: int = 8) -> tuple[Problem, Placement]:
    loads = np.random.default_rng(1).integers(1, 1000, (2, 12)).tolist()
    problem = replace(problem_of(loads, gpus, slots_per_gpu=6), survive=Survival(gpus=2))
    return problem, find_method("refine")(problem)


def test_too_many_losses_are_drawn_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """28 pairs of 8 GPUs where 16 are affordable: a sample with the worst one found by steps, the same each
    time, and no claim to be all.
    """
    problem, placement = surviving_two()
    everything = after_loss(problem, placement, Survival(gpus=2))
    monkeypatch.setattr(planner.cost.lost, "LOSS_WORK", 1)
    some, again = (after_loss(problem, placement, Survival(gpus=2)) for _ in range(2))
    assert some == again
    assert everything.losses == comb(8, 2) > some.losses
    assert not some.exact
    assert "of 28 losses (drawn" in coverage(some)
    assert worst(some).max_over_mean <= worst(everything).max_over_mean


def worst(found: AfterLoss) -> Served:
    return found.worst_balance.same_batch


def test_held_out_load_is_used_where_it_is_given() -> None:
    """All of its load on one expert."""
    problem, placement = surviving_two()
    load = LoadProfile(np.array([[[1] + [0] * 11] * 2], dtype=np.int64), problem.load.layer_ids, "held out")
    found = after_loss(problem, placement, Survival(gpus=2), load)
    assert found.held_out
    assert found.before.max_over_mean > after_loss(problem, placement, Survival(gpus=2)).before.max_over_mean


def test_layers_without_a_signal_are_no_part_of_the_balance() -> None:
    """One layer of two is silent: the figures before a loss are those of the plan."""
    loads = [[5, 3, 2, 1], [0, 0, 0, 0]]
    problem = replace(problem_of(loads, 4, slots_per_gpu=3), survive=Survival(gpus=1))
    placement = find_method("greedy")(problem)
    assert after_loss(problem, placement, Survival(gpus=1)).before.max_over_mean == pytest.approx(
        cost(problem, placement).max_over_mean
    )


def test_what_is_left_closes_up() -> None:
    """GPU 1 of three goes, with its two slots."""
    left = surviving_rows(Placement(np.array([[0, 1, 2, 3, 4, 5]]), (0,), 3), (1,))
    assert (left.gpus, left.expert_LP.tolist()) == (2, [[0, 1, 4, 5]])


def test_a_machine_cannot_lose_all_its_gpus() -> None:
    """One line."""
    problem, _ = surviving_two(8)
    with pytest.raises(BadInput, match="all 8 GPUs are lost"):
        problem.topology.without(range(8))
