"""A calibrated machine: its own start-up and shares, said with their errors; the chip's where it has none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.cost import constants_of, cost, efficiency_R
from planner.plan import plan_from_dict, plan_to_dict
from planner.planning import PlanRequest, answer
from planner.problem import Problem
from planner.topology import Calibration, Reached, Topology, calibrated, read_topology
from planner.topology.calibrated import write_calibration
from tests.planner.calibrations import EFFICIENCY, START_SECONDS, calibration_of, phase_of, scale_of
from tests.planner.small import BEST_ROW, placed, question, two_nodes


def known(calibration: Calibration | None = None, evidence: str = "assumed") -> Topology:
    topology = two_nodes(evidence)
    return calibrated(topology, calibration or calibration_of(topology), "test")


def asked(topology: Topology, transport: str = "slot") -> Problem:
    return question(topology=topology, transport=transport)


@pytest.mark.parametrize("evidence", ["assumed", "measured"])
def test_seconds_are_start_up_and_bytes_over_the_calibrated_share(evidence: str) -> None:
    """A measured rate too is only reached in part."""
    problem = asked(known(evidence=evidence))
    constants = constants_of(problem).dispatch
    assert constants.start_seconds(problem.gpus, problem.slots_per_gpu) == START_SECONDS
    shares_R = [EFFICIENCY[resource.tier] for resource in problem.topology.resources]
    np.testing.assert_array_equal(efficiency_R(problem, constants), shares_R)
    alone = replace(problem.topology, calibration=None)
    full = [1.0] * len(shares_R)
    measured = constants_of(asked(alone)).dispatch
    assert (efficiency_R(asked(alone), measured).tolist() == full) == (evidence == "measured")


def test_a_share_twice_as_large_halves_what_bytes_take() -> None:
    topology = two_nodes()

    def bytes_seconds(share: float) -> float:
        reached = (Reached("nic", share, 9), Reached("nvlink", share, 9))
        problem = asked(known(calibration_of(topology, reached=reached)))
        return float(cost(problem, placed(BEST_ROW, problem)).dispatch_seconds_L[0]) - START_SECONDS

    assert bytes_seconds(0.4) == pytest.approx(2 * bytes_seconds(0.8))


def test_a_tier_that_no_run_waited_for_keeps_its_share() -> None:
    topology = two_nodes("measured")
    problem = asked(known(calibration_of(topology, reached=(Reached("nic", 0.9, 9),)), "measured"))
    shares_R = efficiency_R(problem, constants_of(problem).dispatch)
    for resource, share in zip(problem.topology.resources, shares_R, strict=True):
        assert share == (0.9 if resource.tier == "nic" else 1.0)


def test_the_lines_say_what_was_run_and_how_far_off_it_is() -> None:
    dispatch = constants_of(asked(known())).dispatch
    assert dispatch.source == "calibrated on lab, 2026-01-15, over gloo, between CPU processes"
    assert dispatch.error == "mean error 2.1%, on settings left out 3.4%"


def test_beyond_its_scale_the_line_says_extrapolated() -> None:
    topology = two_nodes()
    scale = scale_of(topology, gpus=2, domains=1, nodes=1)
    error = constants_of(asked(known(calibration_of(topology, scale=scale)))).dispatch.error
    assert "extrapolated from 2 GPUs to 4, 1 NVLink domain to 2, 1 node to 2, not judged" in error


def test_bytes_outside_what_was_sent_are_extrapolated() -> None:
    topology = two_nodes()
    scale = scale_of(topology, bytes_sent=(1.0, 2.0))
    problem = asked(known(calibration_of(topology, scale=scale)))
    assert "extrapolated from 2 B a GPU and step to " in constants_of(problem).combine.error


def test_a_transport_or_phase_that_was_not_run_keeps_the_chips_constants_and_says_so() -> None:
    topology = known()
    node, alone = asked(topology, "node"), asked(two_nodes(), "node")
    found, chip = constants_of(node), constants_of(alone)
    assert found.dispatch.source == (
        f"{chip.dispatch.source} (the machine is calibrated over gloo, not in dispatch of node, but of slot)"
    )
    assert replace(found.dispatch, source=chip.dispatch.source) == chip.dispatch
    assert "not in compute of slot" in constants_of(asked(topology)).compute.source


def test_compute_is_calibrated_where_it_was_measured() -> None:
    topology = two_nodes()
    reached = (Reached("flops", 0.5, 9), Reached("memory", 0.25, 9))
    calibration = Calibration("nccl", (phase_of(topology, "compute", reached=reached),))
    compute = constants_of(asked(known(calibration))).compute
    assert (compute.fixed_seconds, compute.flops_efficiency, compute.memory_efficiency) == (0.001, 0.5, 0.25)
    assert compute.source == "calibrated on lab, 2026-01-15, over nccl"


def test_a_plan_keeps_what_its_seconds_rest_on(tmp_path: Path) -> None:
    topology = read_topology("hgx-h100:2x2")
    path = write_calibration(calibration_of(topology, "nccl"), tmp_path / "c.json")
    request = PlanRequest("olmoe", "hgx-h100:2x2", method="linear", redundant=0)
    plain, value = (plan_to_dict(answer(replace(request, calibrations=files))) for files in ((), (path,)))
    assert value["constants"]["dispatch"]["calibrated"] == EFFICIENCY
    assert value["constants"]["dispatch"]["fixed_seconds"] == START_SECONDS
    assert "calibrated" not in plain["constants"]["dispatch"]
    assert "calibration" not in plain["topology"]
    assert any("calibration over nccl (lab, 2026-01-15)" in note for note in value["notes"])
    assert plan_from_dict(value, "plan").problem.topology.calibration == calibration_of(topology, "nccl")
