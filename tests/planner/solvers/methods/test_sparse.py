"""Replicas of cold experts for steps that wait for weights."""

import numpy as np
import pytest

from planner.cost import cost
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.plan import Origin
from planner.planning import make_plan
from planner.problem import Problem, Workload
from planner.solvers import Search, find_method
from planner.solvers.methods.sparse import few_touched_L
from tests.planner.engines.examples import machine


def decode(tokens_per_rank: int) -> Problem:
    """128 skewed experts of large weights on 8 GPUs, 20 slots each."""
    model = ModelSpec("small", "test", 2, (0, 1), 128, 4, 4096, 4096, 4096, "bf16", "made up for tests")
    counts_LE = (np.random.default_rng(2).lognormal(0, 1.2, (2, 128)) * 1e4).astype(np.int64)
    return Problem(
        machine(8),
        model,
        LoadProfile(counts_LE[None], (0, 1), "made up for tests"),
        Workload(tokens_per_rank),
        20,
    )


def test_replicas_go_to_the_coldest() -> None:
    """As many as slots are left, one each."""
    problem = decode(1)
    replicas_LE = find_method("sparse")(problem).replicas_LE(128)
    for share_E, replicas_E in zip(problem.shares_LE, replicas_LE, strict=True):
        assert set(np.flatnonzero(replicas_E == 2)) == set(np.argsort(share_E, kind="stable")[:32])
        assert replicas_E.sum() == 160


def test_a_small_step_reads_fewer_weights() -> None:
    """Compared with replicas of hot experts, whose balance it gives up."""
    problem = decode(1)
    few, level = (cost(problem, find_method(name)(problem)) for name in ("sparse", "refine"))
    assert few.compute_seconds_L.sum() < 0.95 * level.compute_seconds_L.sum()
    assert few.max_over_mean > level.max_over_mean


@pytest.mark.parametrize(("tokens", "few"), [(1, True), (512, False)])
def test_auto_takes_it_where_it_pays(tokens: int, few: bool) -> None:
    """In a tiny step and not in a large one, by predicted time."""
    problem = decode(tokens)
    assert few_touched_L(problem).tolist() == [few, few]
    plan = make_plan(lambda _: problem, problem.redundant, Search(), Origin())
    seconds = {name: cost(problem, find_method(name)(problem)).total_seconds for name in ("sparse", "refine")}
    assert plan.fitted.total_seconds <= min(seconds.values()) * (1 + 1e-12)
    assert (seconds["sparse"] < seconds["refine"]) == few
