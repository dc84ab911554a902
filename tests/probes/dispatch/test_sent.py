"""The predicted dispatch, against slow counts written from the words of the transports.

They are not written from the code.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput
from probes.dispatch import sent

NODE_G = np.array([0, 0, 1, 1])
TRANSPORTS = ("slot", "rank", "node", "allgather")


def slow_messages(
    slots_STK: np.ndarray, slots_per_gpu: int, node_G: np.ndarray, transport: str
) -> np.ndarray:
    """One record after the other, in a dictionary."""
    sent: Counter[tuple[int, int]] = Counter()
    for source, tokens in enumerate(slots_STK.tolist()):
        for slots in tokens:
            gpus = [slot // slots_per_gpu for slot in slots]
            if transport == "slot":
                sent.update((source, gpu) for gpu in gpus)
            elif transport == "rank":
                sent.update((source, gpu) for gpu in set(gpus))
            elif transport == "allgather":
                units = int(node_G.max()) + 1
                places = [[gpu for gpu in range(len(node_G)) if node_G[gpu] == unit] for unit in range(units)]
                position, own = places[node_G[source]].index(source), int(node_G[source])
                for step in range(units):  # the block moves on, and every unit that has it spreads it
                    here = places[(own + step) % units][position]
                    if step:
                        sent[places[(own + step - 1) % units][position], here] += 1
                    sent.update((here, gpu) for gpu in places[(own + step) % units])
            else:
                position = [gpu for gpu in range(len(node_G)) if node_G[gpu] == node_G[source]].index(source)
                for node in {int(node_G[gpu]) for gpu in gpus}:
                    forwarder = [gpu for gpu in range(len(node_G)) if node_G[gpu] == node][position]
                    sent[source, forwarder] += 1
                    sent.update((forwarder, gpu) for gpu in set(gpus) if node_G[gpu] == node)
    return np.array([[sent[source, gpu] for gpu in range(len(node_G))] for source in range(len(node_G))])


@st.composite
def dispatches(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray]:
    """slots_STK, slots a GPU and node_G: up to three nodes of up to three GPUs, their ranks in any order."""
    nodes, gpus_per_node, slots_per_gpu = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    gpus = nodes * gpus_per_node
    top_k = draw(st.integers(1, min(4, gpus * slots_per_gpu)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    node_G = rng.permutation(np.repeat(np.arange(nodes), gpus_per_node))
    slots_STK = np.array(
        [[rng.permutation(gpus * slots_per_gpu)[:top_k] for _ in range(5)] for _ in range(gpus)]
    )
    return slots_STK, slots_per_gpu, node_G


@pytest.mark.parametrize("transport", TRANSPORTS)
@given(case=dispatches())
@settings(max_examples=50, deadline=None)
def test_messages_equal_a_count_of_every_record(
    transport: str, case: tuple[np.ndarray, int, np.ndarray]
) -> None:
    """Every transport's matrix, for any number of nodes and any rank order."""
    slots_STK, slots_per_gpu, node_G = case
    fast_GG = sent.messages(slots_STK, len(node_G), slots_per_gpu, node_G, transport)
    assert fast_GG.tolist() == slow_messages(slots_STK, slots_per_gpu, node_G, transport).tolist()


def test_messages_of_one_token_by_hand() -> None:
    """GPU 0 of 2 x 2, slots 2 and 3 on GPU 1, 4 on GPU 2, 6 on GPU 3: slot 4 records, rank 3, node 1 + 1 over
    the network and 3 to the GPUs.
    """
    slots_STK = np.full((4, 0, 4), 0)
    only_STK = np.concatenate([slots_STK, np.zeros((4, 1, 4), dtype=int)], axis=1)
    only_STK[0, 0] = [2, 3, 4, 6]
    expected = {"slot": [0, 2, 1, 1], "rank": [0, 1, 1, 1]}
    for transport, row in expected.items():
        assert sent.hops(only_STK, 2, NODE_G, transport)[0][0].tolist() == row
    first_GG, second_GG = sent.hops(only_STK, 2, NODE_G, "node")
    assert first_GG[0].tolist() == [1, 0, 1, 0]
    assert second_GG[2, 2] == second_GG[2, 3] == 1
    assert second_GG[0, 1] == 1


def test_assignments_count_each_expert_at_its_gpu() -> None:
    """Replicas of one expert on two GPUs are counted apart."""
    expert_P = np.array([0, 1, 0, 2])
    slots_STK = np.array([[[0, 1], [2, 3]], [[2, 1], [2, 3]]])
    counts_SGE = sent.assignments(slots_STK, expert_P, gpus=2, slots_per_gpu=2, experts=3)
    assert counts_SGE.tolist() == [[[1, 1, 0], [1, 0, 1]], [[0, 1, 0], [2, 0, 1]]]


@given(seed=st.integers(0, 1000), experts=st.integers(1, 12), data=st.data())
@settings(max_examples=50, deadline=None)
def test_drawn_experts_are_distinct_and_repeatable(seed: int, experts: int, data: st.DataObject) -> None:
    """The same seed gives the same tokens, and no token names an expert twice."""
    top_k = data.draw(st.integers(1, experts))
    shares_E = np.random.default_rng(seed).random(experts)
    draws = [sent.draw_tokens(shares_E, 20, top_k, np.random.default_rng(seed)) for _ in range(2)]
    assert (draws[0] == draws[1]).all()
    assert all(len(set(row)) == top_k for row in draws[0].tolist())


def test_drawn_shares_follow_the_load() -> None:
    """With top_k = 1 the draw has the load's own shares; with top_k = 2 of [.5, .3, .2] the first expert is
    in 0.839 of the tokens (by hand).
    """
    shares_E = np.array([0.5, 0.3, 0.2])
    single = sent.draw_tokens(shares_E, 40_000, 1, np.random.default_rng(1))
    assert np.allclose(np.bincount(single.ravel()) / 40_000, shares_E, atol=0.01)
    pairs = sent.draw_tokens(shares_E, 40_000, 2, np.random.default_rng(1))
    included = 0.5 + 0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8
    assert abs((pairs == 0).any(axis=1).mean() - included) < 0.01


def test_experts_without_load_come_last() -> None:
    """An expert nobody asked for is drawn only to fill up."""
    drawn = sent.draw_tokens(np.array([0.0, 0.5, 0.0, 0.5]), 50, 2, np.random.default_rng(0))
    assert set(drawn.ravel().tolist()) == {1, 3}
    with pytest.raises(ValueError, match="distinct"):
        sent.draw_tokens(np.array([0.5, np.nan]), 1, 1, np.random.default_rng(0))


def test_trace_rows_are_taken_whole() -> None:
    """Tokens of a trace keep the experts they chose together, each row at most once."""
    trace_RK = np.array([[0, 1], [2, 3], [4, 5]])
    drawn = sent.draw_rows(trace_RK, 3, np.random.default_rng(0))
    assert sorted(drawn.tolist()) == trace_RK.tolist()
    assert len(sent.draw_rows(trace_RK, 10, np.random.default_rng(0))) == 10


def test_chosen_slots_hold_the_expert_and_follow_the_shares() -> None:
    """Shares of 0.25, 0.75 and 0 over three replicas: the third is never used."""
    expert_P = np.array([1, 0, 1, 2, 1])
    share_P = np.array([0.25, 1.0, 0.75, 1.0, 0.0])
    experts_TK = np.tile([[1, 0]], (20_000, 1))
    slots_TK = sent.choose_slots(experts_TK, share_P, expert_P, np.random.default_rng(0))
    assert (expert_P[slots_TK] == experts_TK).all()
    assert np.allclose(np.bincount(slots_TK[:, 0], minlength=5) / 20_000, [0.25, 0, 0.75, 0, 0], atol=0.01)


def test_a_share_that_sums_below_one_never_reaches_the_next_expert() -> None:
    """Ten replicas of 0.1 sum to a little less than 1 in floating point; the draw stays with the expert."""
    expert_P = np.repeat([0, 1], 10)
    experts_TK = np.zeros((100_000, 1), dtype=np.int64)
    slots_TK = sent.choose_slots(experts_TK, np.full(20, 0.1), expert_P, np.random.default_rng(3))
    assert slots_TK.max() == 9


def test_an_expert_without_a_slot_is_our_fault() -> None:
    """The judge refuses such a placement long before; here it must not be passed over in silence."""
    with pytest.raises(ValueError, match="expert 2 has no slot"):
        sent.choose_slots(np.array([[2]]), np.ones(2), np.array([0, 1]), np.random.default_rng(0))


def test_bad_transports_are_named() -> None:
    """An unknown transport, and nodes that cannot be paired."""
    slots_STK = np.zeros((3, 1, 1), dtype=np.int64)
    with pytest.raises(BadInput, match="transport 'pigeon' is unknown"):
        sent.hops(slots_STK, 1, np.array([0, 0, 1]), "pigeon")
    with pytest.raises(BadInput, match="node 0 has 2 GPUs, node 1 has 1"):
        sent.hops(slots_STK, 1, np.array([0, 0, 1]), "node")
