"""`solve --survive` from the command line to the file and back."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.placement import Placement
from planner.plan import judged
from planner.planning import PlanRequest, answer
from planner.problem import Survival
from planner.report.verdict import contest_of, verdict
from planner.solvers.registry import method_names
from tests.strategies import problem_of

ON_FOUR = ["--model", "mixtral", "--topology", "hgx-h100:2x2", "--context", "32"]  # many replicas fit


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def plan_file(path: Path, *flags: str) -> dict[str, Any]:
    result = run("solve", *ON_FOUR, *flags, "-o", path)
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def held_by(value: dict[str, Any], gpus: tuple[int, ...]) -> list[set[int]]:
    """The experts that these GPUs hold, layer by layer, from the file alone."""
    slots = value["slots_per_gpu"]
    return [
        {expert for gpu in gpus for expert in row[gpu * slots : (gpu + 1) * slots]}
        for row in value["placement"].values()
    ]


@pytest.mark.parametrize("method", [name for name in method_names() if name != "cpsat"])
@pytest.mark.parametrize(
    ("survive", "left"),
    [
        ("1", list(combinations(range(4), 3))),
        ("2", list(combinations(range(4), 2))),
        ("node", [(0, 1), (2, 3)]),
    ],
)
def test_every_method_leaves_every_expert_a_slot(
    tmp_path: Path, method: str, survive: str, left: list[tuple[int, ...]]
) -> None:
    """Whichever GPUs are left, they hold all eight experts in every layer; R is the smallest, chosen by
    `auto`.
    """
    value = plan_file(tmp_path / "plan.json", "--survive", survive, "--method", method)
    assert all(held == set(range(8)) for gpus in left for held in held_by(value, gpus))
    assert value["survive"] == survive
    assert value["predicted"]["after_loss"]["exact"]
    assert run("check", tmp_path / "plan.json").exit_code == 0


def test_what_a_loss_leaves_need_not_be_resplittable(tmp_path: Path) -> None:
    """A node of two is lost and R = 0 remains: the plan joins its four GPUs, the two that are left are priced
    as they are.
    """
    flags = ["--survive", "node", "--resplittable", "--redundant", "8", "--method", "greedy"]
    value = plan_file(tmp_path / "plan.json", *flags)
    assert value["resplittable"]
    assert value["predicted"]["after_loss"]["exact"]


@pytest.mark.parametrize("engine", ["sglang", "vllm", "trtllm", "vllm_ascend"])
def test_every_engine_s_rule(tmp_path: Path, engine: str) -> None:
    """Also where replicas spread over nodes, and where settling follows."""
    flags = ["--survive", "1", "--redundant", "12", "--engine", engine, "--method", "refine"]
    value = plan_file(tmp_path / "plan.json", *flags)
    assert all(held == set(range(8)) for gpus in combinations(range(4), 3) for held in held_by(value, gpus))


def test_a_plan_whose_rows_no_longer_survive_is_refused(tmp_path: Path) -> None:
    """Two slots of different experts swapped by hand."""
    path = tmp_path / "plan.json"
    value = plan_file(path, "--survive", "1", "--redundant", "8", "--method", "refine")
    row = value["placement"]["5"]
    twice = next(slot for slot in range(4) if row[slot] not in row[4:8])
    gone = row[twice]
    other = next(slot for slot in range(8, 16) if row[slot] == gone)
    row[other] = next(expert for expert in range(8) if expert not in row[other // 4 * 4 : other // 4 * 4 + 4])
    path.write_text(json.dumps(value))
    result = run("check", path)
    assert result.exit_code == 2
    assert f"layer 5: expert {gone} would not survive the loss of any 1 GPU" in result.stderr


def test_a_file_that_asks_for_nonsense_is_refused(tmp_path: Path) -> None:
    """One line with the place."""
    path = tmp_path / "plan.json"
    value = plan_file(path, "--redundant", "8", "--method", "greedy")
    for wrong, words in (("some", "'survive' is 'some'; expected a number of GPUs"), (2, "'survive'")):
        path.write_text(json.dumps({**value, "survive": wrong}))
        result = run("check", path)
        assert result.exit_code == 2
        assert words in result.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--survive", "1", "--redundant", "4"],
            "the smallest is --redundant 8, 4 slots a GPU; memory fits 7 slots",
        ),
        (
            ["--survive", "3", "--redundant", "4"],
            (
                "the smallest is --redundant 24, 8 slots a GPU; memory fits 7 slots of 11.27 GB a GPU, "
                "so take more GPUs"
            ),
        ),
        (["--survive", "4"], "the topology has 4 GPUs; at most --survive 3"),
        (["--survive", "0"], "give the number of GPUs that may be lost at once"),
        (["--survive", "rack"], "give the number of GPUs that may be lost at once"),
    ],
)
def test_what_cannot_be_survived_says_what_can(flags: list[str], words: str) -> None:
    """One line, exit 2."""
    result = run("solve", *ON_FOUR, *flags)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert words in result.stderr


def test_the_report_tells_the_cost_after_the_loss() -> None:
    """The table, and how many losses were looked at."""
    result = run("solve", *ON_FOUR, "--survive", "1", "--redundant", "8", "--method", "refine", "--details")
    assert "After the loss of any 1 GPU (held-out load)" in result.stdout
    assert "Balance of all 4 losses, steps of 4" in " ".join(result.stdout.split())


def test_a_default_that_survives_nothing_is_not_called_a_winner() -> None:
    """The fewest replicas would be lost with their GPU, however fast."""
    plan = answer(
        PlanRequest(
            "mixtral", "hgx-h100:2x2", redundant=8, method="refine", survive=Survival(gpus=1), context=32
        )
    )
    assert [baseline.survives for baseline in plan.baselines] == [True, False]
    assert "R = 0" not in verdict(contest_of(plan))[0]


def test_judged_refuses_a_method_that_forgets_a_loss() -> None:
    """A fault of ours raises, it is no bad input."""
    problem = replace(problem_of([[4, 1, 1, 1]], gpus=4, slots_per_gpu=3), survive=Survival(gpus=2))
    row = [0, 1, 2, 0, 1, 3, 1, 2, 3, 1, 2, 3]  # expert 0 on two GPUs
    with pytest.raises(AssertionError, match="broke the rule 'survive'"):
        judged(problem, Placement(np.array([row]), (0,), 4))


@pytest.mark.parametrize(
    ("survive", "flags"),
    [
        ("1", ["--resplittable", "--method", "refine"]),
        ("node", ["--resplittable", "--method", "refine"]),
        ("1", ["--gpu-speed", "0=0.7", "--method", "refine"]),
        ("node", ["--objective", "worst", "--budget", "0.3"]),
    ],
)
def test_losses_beside_other_wishes(tmp_path: Path, survive: str, flags: list[str]) -> None:
    """The judge takes the plan, whatever else was asked."""
    path = tmp_path / "plan.json"
    result = run("solve", *ON_FOUR, "--survive", survive, *flags, "--redundant", "12", "-o", path)
    assert result.exit_code == 0, result.output
    assert run("check", path).exit_code == 0


def test_the_same_question_gives_the_same_bytes(tmp_path: Path) -> None:
    """Dispersal draws nothing, and a sample of losses is drawn alike."""
    for name in ("a.json", "b.json"):
        plan_file(tmp_path / name, "--survive", "2", "--method", "refine")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
