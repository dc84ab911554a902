"""Remote places per token, against tokens sent one by one and figures made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from planner.cost import remote_places_L
from planner.load import LoadProfile, Trace
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.replica import CHOICES, find_rule
from tests.strategies import cluster, problem_of, small_model


def traced(
    tokens: list[list[int]], rule: str, expert_P: list[int], *, nodes: int = 2, tokens_per_rank: int = 128
) -> tuple[Problem, Placement]:
    """One layer, two GPUs a node, these tokens, this placement."""
    experts_LTK = np.array([tokens], dtype=np.int32)
    experts, gpus = max(expert_P) + 1, 2 * nodes
    counts = np.bincount(experts_LTK.ravel(), minlength=experts).astype(np.int64)
    load = LoadProfile(counts[None, None], (0,), "made for tests", trace=Trace(experts_LTK, (len(tokens),)))
    model = replace(small_model(1, experts), top_k=len(tokens[0]))
    problem = Problem(
        cluster(nodes, 2),
        model,
        load,
        Workload(tokens_per_rank, transport="node"),
        len(expert_P) // gpus,
        rule,
    )
    return problem, Placement(np.array([expert_P]), (0,), gpus)


def test_single_copies_by_hand() -> None:
    """Experts 0, 1 on node 0, experts 2, 3 on node 1: a token of one node is remote for half of the ranks, a
    token of both always for one place.
    """
    problem, placement = traced([[0, 1], [0, 2]], "even", [0, 1, 2, 3])
    assert remote_places_L(problem, placement) == pytest.approx([(0.5 + 1.0) / 2])


def test_a_copy_on_every_node_is_never_remote_under_the_nearest_rule() -> None:
    """And remote for half of the tokens where replicas are shared evenly."""
    for rule, expected in (("nearest", 0.0), ("nearest-static", 0.0), ("even", 0.5)):
        problem, placement = traced([[0], [1]], rule, [0, 1, 0, 1])
        assert remote_places_L(problem, placement) == pytest.approx([expected]), rule


def test_experts_of_a_row_pick_alike_under_the_hash() -> None:
    """Both replicated experts pick the first or both the second copy, so a token reaches one node, not one
    and a half on average.
    """
    tokens = [[0, 1]] * 8
    problem, placement = traced(tokens, "hashed", [0, 1, 0, 1])
    assert remote_places_L(problem, placement) == pytest.approx([0.5])
    independent, _ = traced(tokens, "even", [0, 1, 0, 1])
    assert remote_places_L(independent, placement) == pytest.approx([0.75])


@settings(max_examples=30)
@given(
    tokens=st.lists(st.permutations(range(5)).map(lambda ids: list(ids[:3])), min_size=1, max_size=5),
    rule=st.sampled_from(["even", "nearest", "nearest-static"]),
    order=st.permutations([0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 4, 1]),
)
def test_equals_the_expectation_of_independent_draws(
    tokens: list[list[int]], rule: str, order: list[int]
) -> None:
    """Every way to pick a slot for each of a token's experts, weighed by the rule, counted place by place."""
    problem, placement = traced(tokens, rule, order, nodes=3)
    share_SP = np.broadcast_to(next(iter(find_rule(rule)(placement, problem.situation()))), (6, 12))
    node_P = np.repeat(problem.node_G, 2)
    total = 0.0
    for rank in range(6):
        for token in tokens:
            options = [
                [
                    (int(node_P[slot]), float(share_SP[rank, slot]))
                    for slot in range(12)
                    if order[slot] == expert
                ]
                for expert in token
            ]
            for a, weight_a in options[0]:
                for b, weight_b in options[1]:
                    for c, weight_c in options[2]:
                        total += weight_a * weight_b * weight_c * len({a, b, c} - {int(problem.node_G[rank])})
    assert remote_places_L(problem, placement) == pytest.approx([total / 6 / len(tokens)])


@pytest.mark.parametrize("rule", ["hashed", "row-index"])
def test_rules_by_row_equal_the_engines_picks(rule: str) -> None:
    """Each token in every row of every rank's batch, sent where the engine's own choice sends it."""
    order = [0, 1, 2, 3, 0, 2, 4, 0]
    tokens = [[0, 2, 1], [0, 4, 3]]
    problem, placement = traced(tokens, rule, order, tokens_per_rank=7)
    node_P = np.repeat(problem.node_G, 2)
    reached = []
    for rank in range(4):
        for token in tokens:
            slots_TK = CHOICES[rule](np.array([token] * 7), np.array(order), rank, 4)
            reached += [
                len(set(node_P[slots_K].tolist()) - {int(problem.node_G[rank])}) for slots_K in slots_TK
            ]
    assert remote_places_L(problem, placement) == pytest.approx([np.mean(reached)])


def test_places_other_than_nodes() -> None:
    """GPUs as places: the other GPU of the node counts too."""
    problem, placement = traced([[0, 1]], "even", [0, 1, 2, 3])
    assert remote_places_L(problem, placement, place_G=np.arange(4)) == pytest.approx([(1 + 1 + 2 + 2) / 4])


def test_a_layer_that_the_trace_lacks_is_nan() -> None:
    """Not zero: nothing is known of it."""
    problem, placement = traced([[0, 1]], "even", [0, 1, 2, 3])
    absent = replace(problem.load, trace=Trace(np.full((1, 1, 2), -1, dtype=np.int32), (1,)))
    assert np.isnan(remote_places_L(problem, placement, absent)).all()


def test_counts_alone_are_refused() -> None:
    """One line that says what is missing."""
    problem = problem_of([[1, 2]], gpus=2, slots_per_gpu=1)
    with pytest.raises(
        BadInput, match="places per token are counted over a trace, and this load has counts alone"
    ):
        remote_places_L(problem, Placement(np.array([[0, 1]]), (0,), 2))
