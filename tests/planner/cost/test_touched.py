"""Small decode steps wait for weights: how many slots of a GPU a step touches.

Counted by simulation; and what follows for replicas.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import Routing, cost
from planner.cost.compute import touched_slots_G
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.planning import PlanRequest, answer
from planner.problem import Problem, Workload
from planner.replica import find_rule
from planner.solvers import find_method
from tests.planner.engines.examples import machine
from tests.planner.small import placed, question, random_row

STEPS = 4000


def simulated_G(
    problem: Problem,
    pool_TK: np.ndarray,
    share_SP: np.ndarray,
    expert_P: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Mean touched slots of each GPU over steps: every rank draws its tokens from the pool, every assignment
    a replica with the rule's shares.
    """
    touched_P = np.zeros(problem.slots)
    for _ in range(STEPS):
        hit_P = np.zeros(problem.slots, dtype=bool)
        for rank in range(problem.gpus):
            share_P = share_SP[rank if len(share_SP) > 1 else 0]
            for expert in pool_TK[rng.integers(len(pool_TK), size=problem.workload.tokens_per_rank)].ravel():
                slots = np.flatnonzero(expert_P == expert)
                hit_P[
                    slots[
                        np.searchsorted(
                            np.cumsum(share_P[slots]), rng.random() * share_P[slots].sum(), side="right"
                        )
                    ]
                ] = True
        touched_P += hit_P
    return np.asarray(touched_P.reshape(problem.gpus, -1).sum(axis=1) / STEPS)


@pytest.mark.parametrize("rule", ["even", "nearest"])
def test_touched_slots_are_those_of_a_simulation(rule: str) -> None:
    """One and two tokens a rank on 2 nodes of 2 GPUs, top-2 of 6 experts with one in every token: within what
    so many steps can tell.
    """
    rng = np.random.default_rng(3)
    pool_TK = np.array([[0, 1], [0, 2], [0, 1], [0, 3], [0, 4], [0, 5], [0, 1], [0, 2]])
    expert_P = np.array([0, 1, 2, 0, 3, 4, 0, 1, 5, 1, 2, 3])
    for tokens in (1, 2):
        problem = question(
            [0] * 6, machine(2, 2), 3, rule, traced_TK=pool_TK.tolist(), top_k=2, tokens_per_rank=tokens
        )
        share_SP = next(iter(find_rule(rule)(placed(expert_P, problem), problem.situation())))
        found_G = touched_slots_G(problem, Routing(problem.shares_LE[0], share_SP, expert_P))
        expected_G = simulated_G(problem, pool_TK, share_SP, expert_P, rng)
        deviation = np.sqrt(problem.slots_per_gpu * 0.25 / STEPS)
        assert np.abs(found_G - expected_G).max() < 5 * deviation


def test_by_hand() -> None:
    """One token a rank, top-1, four GPUs: one of two slots of an expert that half of the tokens choose is
    missed by all four with (3/4)^4.
    """
    problem = question([2, 1, 1, 0], machine(4), 2, tokens_per_rank=1)
    expert_P = np.array([0, 1, 2, 3, 0, 2, 1, 3])
    share_SP = next(iter(find_rule("even")(placed(expert_P, problem), problem.situation())))
    half, quarter = 1 - (1 - 1 / 4) ** 4, 1 - (1 - 1 / 8) ** 4
    found_G = touched_slots_G(problem, Routing(problem.shares_LE[0], share_SP, expert_P))
    assert found_G == pytest.approx([half + quarter, quarter, half + quarter, quarter])


@settings(max_examples=50)
@given(
    st.integers(1, 4),
    st.integers(2, 6),
    st.integers(1, 50),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["even", "nearest", "hashed"]),
)
def test_a_step_touches_no_more_than_there_is(
    gpus: int, experts: int, tokens: int, seed: int, rule: str
) -> None:
    """Between the experts that are certain and the slots; more tokens touch more."""
    rng = np.random.default_rng(seed)
    slots_per_gpu = int(rng.integers(-(-experts // gpus), experts + 1))
    row_P = random_row(rng, experts, gpus, slots_per_gpu)
    counts = rng.integers(1, 9, experts)
    before = np.zeros(gpus)
    for count in (tokens, 2 * tokens):
        problem = question(counts, machine(gpus), slots_per_gpu, rule, tokens_per_rank=count)
        share_SP = next(iter(find_rule(rule)(placed(row_P, problem), problem.situation())))
        found_G = touched_slots_G(problem, Routing(problem.shares_LE[0], share_SP, row_P))
        assert (found_G <= slots_per_gpu + 1e-12).all()
        if rule != "hashed":  # its shares change with the batch
            assert (found_G >= before - 1e-12).all()
        before = found_G


def decode(slots_per_gpu: int, tokens: int) -> Problem:
    """64 large experts, one of them somewhat hot, on one node of 8 GPUs: a step waits for weights, not for
    arithmetic.
    """
    model = ModelSpec("small", "test", 1, (0,), 64, 4, 4096, 8192, 4096, "bf16", "made up for tests")
    counts = np.array([[[40] + [10] * 63]], dtype=np.int64)
    return Problem(
        machine(8), model, LoadProfile(counts, (0,), "made up for tests"), Workload(tokens), slots_per_gpu
    )


def test_more_replicas_can_hurt_a_small_step() -> None:
    """With 2 tokens a rank every replica of a hot expert is one more set of weights to read; with 4096 the
    same replicas take load off the busiest GPU.
    """
    seconds = {
        (slots, tokens): cost(decode(slots, tokens), find_method("refine")(decode(slots, tokens)))
        for slots in (8, 12)
        for tokens in (2, 4096)
    }
    assert seconds[12, 2].compute_seconds_L[0] > 1.03 * seconds[8, 2].compute_seconds_L[0]
    assert seconds[12, 2].max_over_mean < seconds[8, 2].max_over_mean
    assert seconds[12, 4096].compute_seconds_L[0] < 0.97 * seconds[8, 4096].compute_seconds_L[0]


def test_auto_sees_it() -> None:
    """`--redundant auto` keeps Mixtral without replicas in a tiny decode step, where the compute grows with
    R, and says what it tried.
    """
    asked = PlanRequest(
        "mixtral", topology="hgx-h100:1x4", phase="decode", tokens_per_rank=1, method="refine"
    )
    plan = answer(asked)
    more = answer(replace(asked, redundant=8))
    assert plan.problem.redundant == 0
    assert more.fitted.compute_seconds_L.sum() > plan.fitted.compute_seconds_L.sum()
    assert any("R = 0 was chosen" in note for note in plan.origin.notes)


def test_a_certain_expert_is_never_missed() -> None:
    """Every token chooses it: its slot is touched for certain, without a warning from the logarithm of
    nothing.
    """
    problem = question([5, 5], machine(2), 1, top_k=2, tokens_per_rank=1)
    found = cost(problem, Placement(np.array([[0, 1]]), (0,), 2))
    assert np.isfinite(found.compute_seconds_L).all()
