"""Exchanges: all that the cost model sends, apart by hop, for every transport."""

import numpy as np
import pytest

from planner.cost import cost, exchanges_L, message_bytes, messages_GG, units
from planner.cost.routing import Routing
from planner.problem import TRANSPORTS
from planner.replica import find_rule
from tests.planner.small import BEST_ROW, placed, question

EVERY = sorted(TRANSPORTS)


@pytest.mark.parametrize("transport", EVERY)
def test_the_hops_of_a_phase_send_what_the_cost_model_sends(transport: str) -> None:
    """Dispatch in bytes of its messages, combine the same messages backwards in its own."""
    problem = question(transport=transport)
    placement = placed(BEST_ROW, problem)
    (share_SP,) = find_rule(problem.replica_rule)(placement, problem.situation())
    sent_GG = messages_GG(problem, Routing(problem.shares_LE[0], share_SP, placement.expert_LP[0]))
    (found,) = exchanges_L(problem, placement, [0])
    for phase, size, wanted_GG in zip(
        ("dispatch", "combine"), message_bytes(problem), (sent_GG, sent_GG.T), strict=True
    ):
        bytes_GG = np.sum([one.bytes_GG for one in found if one.phase == phase], axis=0)
        np.testing.assert_allclose(bytes_GG, wanted_GG * size, rtol=1e-12)


@pytest.mark.parametrize("transport", EVERY)
def test_a_phase_takes_what_a_step_is_predicted_to(transport: str) -> None:
    problem = question(transport=transport)
    placement = placed(BEST_ROW, problem)
    predicted = cost(problem, placement)
    (found,) = exchanges_L(problem, placement, [0])
    phases = {one.phase: one.phase_seconds for one in found}
    assert phases["dispatch"] == pytest.approx(predicted.dispatch_seconds_L[0])
    assert phases["combine"] == pytest.approx(predicted.combine_seconds_L[0])
    assert all(one.seconds <= one.phase_seconds + 1e-15 for one in found)


@pytest.mark.parametrize("transport", ["node", "allgather"])
def test_one_hop_leaves_its_unit_and_one_never_does(transport: str) -> None:
    """A combine makes the hops of its dispatch backwards."""
    problem = question(transport=transport)
    unit_G = units(problem)
    apart_GG = unit_G[:, None] != unit_G[None, :]
    (found,) = exchanges_L(problem, placed(BEST_ROW, problem), [0])
    names = [(one.phase, one.hop) for one in found]
    assert names == [
        ("dispatch", "between"), ("dispatch", "within"), ("combine", "within"), ("combine", "between")
    ]  # fmt: skip
    for one in found:
        assert not one.bytes_GG[apart_GG if one.hop == "within" else ~apart_GG].any()


@pytest.mark.parametrize("transport", ["slot", "rank"])
def test_messages_that_go_straight_have_one_hop(transport: str) -> None:
    problem = question(transport=transport)
    (found,) = exchanges_L(problem, placed(BEST_ROW, problem), [0])
    assert [(one.phase, one.hop) for one in found] == [("dispatch", ""), ("combine", "")]


def test_a_traced_layer_sends_its_own_tokens() -> None:
    """Each of a token's two experts has a replica on the same two GPUs: 1.5 messages on average."""
    tokens = [[0, 2]] * 4 + [[1, 3]] * 4
    problem = question(traced_TK=tokens, top_k=2, transport="rank", tokens_per_rank=8)
    (found,) = exchanges_L(problem, placed([0, 2, 1, 3, 0, 2, 1, 3], problem), [0])
    assert found[0].bytes_GG.sum() / message_bytes(problem)[0] == pytest.approx(1.5 * problem.gpus * 8)
