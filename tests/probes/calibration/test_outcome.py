"""From timed settings to a calibration: the errors before and after, the scale, and what is refused.

Shapes: R resources.
"""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from planner.base import BadInput
from planner.cost import constants_of, efficiency_R
from planner.problem import Problem
from planner.report.calibration import calibration_report
from planner.topology import calibrated
from probes.calibration.outcome import CalibrationOutcome, Observed, calibrate
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import EXCHANGES, Expected, Timed
from tests.planner.small import question, two_nodes

SHARE, START_SECONDS = {"nvlink": 0.5, "nic": 0.8}, 0.003


def at_tokens(tokens: int) -> Problem:
    problem = question(topology=two_nodes("measured"))
    return replace(problem, workload=replace(problem.workload, tokens_per_rank=tokens))


def observed(side: str, load: str, tokens: int, busiest: int) -> Observed:
    """A row whose exchanges wait for one resource, and obey SHARE and START_SECONDS."""
    problem = at_tokens(tokens)
    topology = problem.topology
    tiers = [one.tier for one in topology.resources]
    stated_R = np.full(len(tiers), 0.0001 * tokens)
    stated_R[busiest % len(tiers)] *= 10
    took = START_SECONDS + float((stated_R / np.array([SHARE[tier] for tier in tiers])).max())
    constants = constants_of(problem).dispatch
    reached_R = efficiency_R(problem, constants)
    start = constants.start_seconds(problem.gpus, problem.slots_per_gpu)
    expected = Expected(
        modelled=dict.fromkeys(PHASES, 1.0),
        drawn=dict.fromkeys(PHASES, start + float((stated_R / reached_R).max())),
        drawn_R=dict.fromkeys(EXCHANGES, stated_R / reached_R),
        start=dict.fromkeys(EXCHANGES, start),
        bytes_GG=dict.fromkeys(EXCHANGES, np.zeros((4, 4))),
        bytes_per_s_R=dict.fromkeys(EXCHANGES, topology.capacity_R * reached_R),
        compute_G=np.ones(4),
    )
    seconds_GN = np.full((4, 3), took)
    return Observed(Timed(side, 0, 0, dict.fromkeys(PHASES, seconds_GN), expected), problem, load)


def run_of(sides: tuple[str, ...] = ("plan", "default", "random-0")) -> list[Observed]:
    return [
        observed(side, f"load, {tokens} tokens", tokens, number * 5 + at)
        for number, side in enumerate(sides)
        for at, tokens in enumerate((16, 32, 64, 128))
    ]


def outcome() -> CalibrationOutcome:
    return calibrate(run_of(), "gloo", "lab", "2026-01-15")


def test_both_exchanges_are_fitted_and_their_errors_stand_beside_those_before() -> None:
    found = outcome()
    assert [one.phase for one in found.judged] == ["dispatch", "combine"]
    assert not found.refused
    dispatch = found.judged[0]
    assert dispatch.before > 0.1
    assert dispatch.fitted.error < 0.01
    assert dispatch.fitted.start_seconds == pytest.approx(START_SECONDS, rel=0.01)
    for one in dispatch.fitted.reached:
        assert one.efficiency == pytest.approx(SHARE[one.tier], rel=0.01)


def test_the_scale_is_what_was_run() -> None:
    scale = outcome().calibration.phases[0].scale
    assert (scale.gpus, scale.domains, scale.nodes, scale.tokens) == (4, 2, 2, (16, 128))
    assert scale.bytes_sent[1] == 8 * scale.bytes_sent[0]
    assert {tier for tier, _ in scale.rates} >= {"nvlink", "nic"}


def test_predictions_with_it_are_those_of_the_fit() -> None:
    """The machine takes it, and a question of the same size is not extrapolated."""
    problem = at_tokens(64)
    topology = calibrated(problem.topology, outcome().calibration, "test")
    constants = constants_of(replace(problem, topology=topology)).dispatch
    assert constants.start_seconds(4, problem.slots_per_gpu) == pytest.approx(START_SECONDS, rel=0.01)
    assert "extrapolated" not in constants.error
    assert constants.held_out is not None


def test_the_report_shows_errors_before_and_after() -> None:
    console = Console(width=120, file=StringIO())
    console.print(calibration_report(outcome()))
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert "slot over gloo on lab" in text
    assert "error before" in text
    assert "dispatch: messages reach" in text
    assert "80.0% of nic" in text


def test_a_phase_that_cannot_be_fitted_is_named_and_the_other_kept() -> None:
    spoilt = [
        replace(
            one,
            timed=replace(
                one.timed, seconds_GN={**one.timed.seconds_GN, "combine": np.full((4, 3), 1 / (1 + number))}
            ),
        )
        for number, one in enumerate(run_of())
    ]
    found = calibrate(spoilt, "gloo", "lab", "2026-01-15")
    assert [one.phase for one in found.judged] == ["dispatch"]
    assert "slot combine" in found.refused["combine"]


def test_two_settings_are_refused_for_both() -> None:
    with pytest.raises(BadInput, match=r"slot dispatch: 2 settings .* slot combine: 2 settings"):
        calibrate(run_of()[:2], "gloo", "lab", "2026-01-15")
