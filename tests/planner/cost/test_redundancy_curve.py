"""The curve over R: where it ends, what is chosen, and that held-out load has no say."""

import numpy as np
import pytest

from planner.base import Infeasible
from planner.cost import CurvePoint, chosen, levelled_off
from planner.load import LoadProfile
from planner.plan import plan_to_dict
from planner.planning import PlanRequest, answer, problem_of_r
from planner.planning.redundancy import Curve, redundant_curve
from planner.problem import Survival, Workload
from planner.solvers import Search
from tests.strategies import cluster, small_model


def points(*seconds: float, held_out: float = 1.0) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(
            4 * step,
            step + 1,
            np.array([value]),
            np.array([held_out]),
            1.0,
            weights_bytes=1.0,
            free_bytes=1.0,
        )
        for step, value in enumerate(seconds)
    )


def test_the_fewest_replicas_near_the_best_are_chosen() -> None:
    """1.02 times the best is near enough, 1.03 is not."""
    assert chosen(points(1.03, 1.02, 1.0)).redundant == 4
    assert chosen(points(1.03, 1.021, 1.0)).redundant == 8
    assert chosen(points(1.0, 2.0)).redundant == 0


def test_a_curve_levels_off_after_three_points_without_a_gain() -> None:
    """Less than half a percent on the best before them is no gain, in one step or in three."""
    assert levelled_off(points(2, 1, 1, 1, 1))
    assert levelled_off(points(2, 1, 0.999, 0.998, 0.996))
    assert not levelled_off(points(2, 1, 1, 1, 0.99))
    assert not levelled_off(points(1, 1, 1))


def curve_of(
    loads: list[list[int]], *, kv_floor_bytes: float = 0.0, survive: Survival | None = None, least: int = 0
) -> Curve:
    """Two nodes of two GPUs."""
    load = LoadProfile(np.array([loads], dtype=np.int64), tuple(range(len(loads))), "made for tests")
    model = small_model(len(loads), len(loads[0]))
    problem_of = problem_of_r(
        model,
        cluster(2, 2),
        load,
        Workload(),
        replica_rule="even",
        kv_floor_bytes=kv_floor_bytes,
        survive=survive,
    )
    return redundant_curve(problem_of, least, 4, Search(), load)


def test_a_curve_goes_up_by_a_slot_on_every_gpu() -> None:
    """Eight experts, one of them hot, on four GPUs."""
    curve = curve_of([[100, 1, 1, 1, 1, 1, 1, 1]])
    redundant = [point.redundant for point in curve.points]
    assert redundant[0] == 0
    assert set(np.diff(redundant).tolist()) == {4}
    assert [point.slots_per_gpu for point in curve.points] == [2 + step for step in range(len(redundant))]
    assert f"R = {curve.redundant} was chosen" in curve.why


def test_a_curve_starts_where_losses_are_survived() -> None:
    """Every expert twice."""
    assert curve_of([[1] * 8], survive=Survival(gpus=1), least=8).points[0].redundant == 8


def test_a_curve_ends_with_memory() -> None:
    """A floor that leaves room for three slots, of 384 bytes each, and no more."""
    slot_bytes = 2 * 3 * 8 * 8
    curve = curve_of([[100, 1, 1, 1, 1, 1, 1, 1]], kv_floor_bytes=80e9 - 3.5 * slot_bytes)
    assert [point.slots_per_gpu for point in curve.points] == [2, 3]
    assert curve.end == "memory ends there"
    with pytest.raises(Infeasible, match="less than the floor"):
        curve_of([[1] * 8], kv_floor_bytes=80e9 - 1.5 * slot_bytes)


def test_a_plan_carries_its_curve() -> None:
    """Also in JSON; a plan whose R was given has none."""
    plan = answer(PlanRequest("mixtral", "hgx-h100:1x4", method="refine"))
    value = plan_to_dict(plan)["redundant_curve"]
    assert [point["redundant"] for point in value] == [point.redundant for point in plan.origin.curve]
    assert plan.problem.redundant == chosen(plan.origin.curve).redundant
    assert (
        plan_to_dict(answer(PlanRequest("mixtral", "hgx-h100:1x4", redundant=0, method="greedy")))[
            "redundant_curve"
        ]
        is None
    )


def test_held_out_load_has_no_say_in_the_choice() -> None:
    """It judges the plan later."""
    assert (
        chosen(points(2.0, 1.0, held_out=5.0)).redundant
        == chosen(points(2.0, 1.0, held_out=1.0)).redundant
        == 4
    )
