"""Messages of every transport, against a count of every token, replica and hop.

The count is written from the words of the transports.
"""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import Routing, inclusion_E, message_bytes, messages_GG, units
from planner.cost.hits import _hit_chance_SX
from planner.cost.routing import assignments_SP
from planner.problem import Problem
from planner.replica.registry import RULES
from probes.dispatch.drawn import draw_by_inclusion
from tests.planner.engines.examples import machine
from tests.planner.small import BEST_ROW, Ints, placed, question, random_row

Floats = npt.NDArray[np.float64]


def routing(problem: Problem, row_P: Ints, *, traced: bool = True) -> Routing:
    """The routing of the problem's only layer under its own rule."""
    share_SP = next(iter(RULES[problem.replica_rule](placed(row_P, problem), problem.situation())))
    trace = problem.load.trace
    return Routing(
        problem.shares_LE[0], share_SP, row_P, trace.experts_LTK[0] if trace is not None and traced else None
    )


def slow_messages(problem: Problem, route: Routing) -> Floats:
    """Every source, token and choice of replicas, each with its chance."""
    assert route.experts_TK is not None
    gpus, transport = problem.gpus, problem.workload.transport
    share_GP = np.broadcast_to(route.share_SP, (gpus, problem.slots))
    weight = problem.workload.tokens_per_rank / len(route.experts_TK)
    sent: Counter[tuple[int, int]] = Counter()
    for source, experts in product(range(gpus), route.experts_TK.tolist()):
        for slots in product(*(np.flatnonzero(route.expert_P == expert).tolist() for expert in experts)):
            chance = weight * float(np.prod([share_GP[source, slot] for slot in slots]))
            for pair in hops(
                source, [slot // problem.slots_per_gpu for slot in slots], units(problem).tolist(), transport
            ):
                sent[pair] += chance  # type: ignore[assignment]  # a Counter of floats
    return np.array([[sent[source, gpu] for gpu in range(gpus)] for source in range(gpus)], dtype=float)


def hops(source: int, gpus: list[int], unit_G: list[int], transport: str) -> list[tuple[int, int]]:
    """The messages of one token whose slots are on `gpus`."""
    if transport == "slot":
        return [(source, gpu) for gpu in gpus]
    if transport == "rank":
        return [(source, gpu) for gpu in set(gpus)]
    sent = []
    for unit in {unit_G[gpu] for gpu in gpus}:
        members = [gpu for gpu in range(len(unit_G)) if unit_G[gpu] == unit]
        index = [gpu for gpu in range(len(unit_G)) if unit_G[gpu] == unit_G[source]].index(source)
        forwarder = source if unit == unit_G[source] else members[index % len(members)]
        sent += [(source, forwarder)] if forwarder != source else []
        sent += [(forwarder, gpu) for gpu in set(gpus) & set(members)]
    return sent


@st.composite
def traced_questions(draw: st.DrawFn) -> tuple[Problem, Ints]:
    """A problem with a trace of four tokens, and a placement; nodes need not be equal."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    gpus = sum(sizes)
    experts = draw(st.integers(1, 5))
    least = -(-experts // gpus)
    slots_per_gpu = draw(st.integers(least, min(experts, least + 1)))
    top_k = draw(st.integers(1, min(3, experts)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    traced_TK = [rng.permutation(experts)[:top_k].tolist() for _ in range(4)]
    topology = machine(*sizes, nodes_per_domain=draw(st.sampled_from([1, 2])) if min(sizes) > 1 else 1)
    rule = draw(st.sampled_from(sorted(RULES)))
    problem = question(
        [1] * experts,
        topology,
        slots_per_gpu,
        rule,
        traced_TK,
        top_k,
        tokens_per_rank=draw(st.integers(1, 9)),
    )
    return problem, random_row(rng, experts, gpus, slots_per_gpu)


@pytest.mark.parametrize("transport", ["slot", "rank", "node"])
@given(case=traced_questions())
@settings(max_examples=60)
def test_messages_of_a_trace_equal_a_count_of_every_token(transport: str, case: tuple[Problem, Ints]) -> None:
    """Every rule, replicas included: each token's replicas are drawn independently."""
    problem, row_P = replace(case[0], workload=replace(case[0].workload, transport=transport)), case[1]
    route = routing(problem, row_P)
    assert np.allclose(messages_GG(problem, route), slow_messages(problem, route), rtol=1e-12, atol=1e-12)


def test_two_hops_of_one_token_by_hand() -> None:
    """GPU 0 of 2 x 2 needs GPUs 2 and 3: one message to GPU 2, which has the same place in its node, one copy
    there and one to GPU 3.
    """
    problem = question(traced_TK=[[1, 3]], top_k=2, slots_per_gpu=1, tokens_per_rank=1, transport="node")
    sent_GG = messages_GG(problem, routing(problem, np.array([0, 2, 1, 3])))
    assert sent_GG.tolist() == [
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 0, 2, 2],
        [0, 0, 2, 2],
    ]  # GPUs 2 and 3 send what they forward, and their own


@given(case=traced_questions())
def test_node_transport_loses_no_copy(case: tuple[Problem, Ints]) -> None:
    """Whatever the way, a GPU gets as many copies from its own unit as `rank` sends it in all; each unit hit
    gets one message over the network.
    """
    problem, row_P = case
    by_node, by_rank = (
        replace(problem, workload=replace(problem.workload, transport=transport))
        for transport in ("node", "rank")
    )
    route = routing(problem, row_P)
    unit_G = units(problem)
    inside_GG = unit_G[:, None] == unit_G
    sent_GG, hits_GG = messages_GG(by_node, route), messages_GG(by_rank, route)
    assert np.where(inside_GG, sent_GG, 0).sum(axis=0) == pytest.approx(hits_GG.sum(axis=0))
    assert (np.where(inside_GG, 0, sent_GG).sum(axis=1) <= hits_GG.sum(axis=1) * (1 + 1e-9)).all()


def test_a_domain_over_nodes_is_one_unit() -> None:
    """Where NVLink spans the nodes, transport `node` has nothing to cross: it is `rank`."""
    spanning, apart = (
        question(topology=machine(2, 2, nodes_per_domain=count), transport="node") for count in (2, 1)
    )
    assert units(spanning).tolist() == [0, 0, 0, 0]
    assert units(apart).tolist() == [0, 0, 1, 1]
    by_rank = replace(spanning, workload=replace(spanning.workload, transport="rank"))
    route = routing(spanning, np.array(BEST_ROW))
    assert messages_GG(spanning, route).tolist() == messages_GG(by_rank, route).tolist()


@pytest.mark.parametrize("sizes", [(1,), (4,), (2, 2), (2, 2, 2), (1, 1, 1)])
def test_allgather_brings_every_token_to_every_gpu_once(sizes: tuple[int, ...]) -> None:
    """Whatever the placement, each GPU receives the tokens of all others, and a token crosses to each other
    node once for each GPU that passes it on.
    """
    gpus = sum(sizes)
    problem = question(topology=machine(*sizes), slots_per_gpu=4, tokens_per_rank=5, transport="allgather")
    draws = [routing(problem, random_row(np.random.default_rng(seed), 4, gpus, 4)) for seed in (0, 1)]
    sent_GG, other_GG = (messages_GG(problem, route) for route in draws)
    assert sent_GG.tolist() == other_GG.tolist()
    assert sent_GG.sum(axis=0).tolist() == [5.0 * (gpus - 1)] * gpus
    crossing = sent_GG[problem.node_G[:, None] != problem.node_G].sum()
    assert crossing == 5 * gpus * (len(sizes) - 1)


@pytest.mark.parametrize(
    ("transport", "top_k", "tolerance"),
    [("rank", 1, 1e-9), ("node", 1, 1e-9), ("rank", 6, 0.01), ("node", 6, 0.01), ("slot", 6, 1e-9)],
)
@pytest.mark.parametrize("gpus_of_nodes", [(4, 4), (2, 2, 2, 2)])
def test_a_histogram_predicts_independent_tokens(
    transport: str, top_k: int, tolerance: float, gpus_of_nodes: tuple[int, ...]
) -> None:
    """Tokens drawn without co-activation: the histogram alone gives the trace's messages, exactly for top-1
    and in total within 1 % otherwise, 5 % a pair.
    """
    rng = np.random.default_rng(7)
    shares_E = rng.lognormal(sigma=0.7, size=64)
    traced_TK = draw_by_inclusion(inclusion_E(shares_E / shares_E.sum(), top_k), 2048, top_k, rng).tolist()
    problem = question([1] * 64, machine(*gpus_of_nodes), 8, "even", traced_TK, top_k, transport=transport)
    row_P = random_row(rng, 64, 8, 8)
    traced_GG, histogram_GG = (
        messages_GG(problem, routing(problem, row_P, traced=traced)) for traced in (True, False)
    )
    assert histogram_GG.sum() == pytest.approx(traced_GG.sum(), rel=tolerance)
    assert histogram_GG.tolist() == [pytest.approx(row, rel=5 * tolerance) for row in traced_GG.tolist()]


@pytest.mark.parametrize("transport", ["rank", "node"])
def test_replicas_at_one_place_are_one_expert_there(transport: str) -> None:
    """Every token uses both experts, each node holds two replicas of one of them: every token hits every node
    once, and every second time a GPU.
    """
    problem = question([1, 1], machine(2, 2), 1, "even", top_k=2, tokens_per_rank=8, transport=transport)
    sent_GG = messages_GG(problem, routing(problem, np.array([0, 0, 1, 1])))
    assert sent_GG[0].tolist() == pytest.approx(
        {"rank": [4, 4, 4, 4], "node": [8, 8, 8, 0]}[transport]
    )  # GPU 0 also forwards what GPU 2 sends


def test_hit_chances_of_distinct_experts() -> None:
    """Two of 8 equal experts, two at each of four places: 15 of the 28 pairs miss a place.

    The order of experts at a place does not matter.
    """
    place_C = np.repeat(np.arange(4), 2)
    assert _hit_chance_SX(np.full((1, 8), 0.25), place_C, 2)[0] == pytest.approx([1 - 15 / 28] * 4)
    one_SX, other_SX = (
        _hit_chance_SX(np.array([pair + [0.1, 0.2] * 3]), place_C, 2) for pair in ([0.8, 0.3], [0.3, 0.8])
    )
    assert one_SX.tolist() == other_SX.tolist()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12).filter(any), st.integers(1, 12))
def test_inclusion_chances_sum_to_top_k(counts: list[int], top_k: int) -> None:
    """Never above 1, in the order of the shares, and k experts a token where so many have load."""
    share_E = np.array(counts) / sum(counts)
    chance_E = inclusion_E(share_E, top_k)
    assert chance_E.max() <= 1
    assert chance_E.sum() == pytest.approx(min(top_k, np.count_nonzero(counts)))
    assert (np.diff(chance_E[np.argsort(share_E, kind="stable")]) >= -1e-12).all()


def test_assignments_are_tokens_times_top_k() -> None:
    """600 tokens a rank, top-1, load 2 : 2 : 1 : 1, two replicas of each: 100 and 50 a slot of a rank."""
    problem = question()
    assert assignments_SP(problem, routing(problem, np.array(BEST_ROW)))[0].tolist() == pytest.approx(
        [100, 50] * 4
    )


@pytest.mark.parametrize(
    ("transport", "dtype", "expected"),
    [
        ("slot", "fp8", (7408, 14336)),
        ("slot", "bf16", (14352, 14336)),
        ("node", "fp8", (7472, 14384)),
        ("node", "bf16", (14416, 14384)),
        (
            "rank",
            "fp8",
            (7492, 14372),
        ),  # hidden, scales, 8 ids of 8 bytes, 8 weights of 4, the source token's index
        ("allgather", "bf16", (14336 + 8 * 8, 14336)),
    ],
)
def test_message_sizes_are_those_of_deepep(transport: str, dtype: str, expected: tuple[int, int]) -> None:
    """Hidden 7168, top-8, as DeepEP's kernels lay a message out; combine is bf16."""
    problem = question([1] * 8, top_k=8, transport=transport, dispatch_dtype=dtype)
    problem = replace(problem, model=replace(problem.model, hidden=7168, dispatch_width=7168))
    assert message_bytes(problem) == expected
