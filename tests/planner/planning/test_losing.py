"""`moeplan loss`: the answer in the first lines, the rest in JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planner.cli import main


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight GPUs on two nodes, two slots each, not made to survive anything."""
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    asked = ("--model", "mixtral", "--topology", "hgx-h100:2x4", "--redundant", "8", "--method", "greedy")
    assert run("solve", *asked, "-o", path).exit_code == 0
    return path


def looked(*arguments: str | Path) -> dict[str, Any]:
    result = run("loss", *arguments, "--json")
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_the_first_lines_hold_the_answer(plan: Path) -> None:
    """What is served, what each kind of loss leaves, what the engine does, which R survives."""
    result = run("loss", plan, "--engine", "sglang")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("8 GPUs with R = 8, nothing lost: ")
    assert lines[1].startswith("Any 1 GPU lost: ")
    assert lines[2].startswith("Any one node lost: ")
    assert lines[2].endswith("experts gone")
    assert lines[3] == "SGLang stops, or goes on where it was started with elastic EP (below)"
    assert lines[4].startswith("R that survives any 1 GPU 8 (placed anew: 8); any one node 8 ")
    assert all(len(line) <= 90 for line in lines[:5])
    assert "goes on with --elastic-ep-backend mooncake" in result.output


def test_what_is_served_is_what_the_plan_says(plan: Path) -> None:
    """Before a loss stands the plan's own step; and no share is above all of it."""
    value, saved = looked(plan), json.loads(plan.read_text())
    step = saved["predicted"]["fitted"]["total_seconds"]
    for kind in value["losses"]:
        before = kind["before"]
        assert before["total_seconds"] == pytest.approx(step)
        assert before["tokens_per_s"] == pytest.approx(8 * 128 / before["whole_seconds"])
        assert before["whole_seconds"] > step
        assert kind["slowest"]["same_batch"]["tokens_per_s"] < before["tokens_per_s"]
    assert [kind["survive"] for kind in value["losses"]] == ["1", "node"]


def test_experts_that_are_gone_are_counted(plan: Path) -> None:
    """Those of the node whose loss takes most, from the file alone."""
    value, rows = looked(plan, "--survive", "node"), json.loads(plan.read_text())["placement"].values()
    gone = [sum(len(set(range(8)) - set(row[:8] if node else row[8:])) for row in rows) for node in (0, 1)]
    assert value["losses"][0]["most_lost_experts"] == max(gone)
    assert len(value["exposure"]["one_node"]) == sum(gone)


def test_what_leaves_too_few_slots_says_so(plan: Path) -> None:
    """Three GPUs hold six of eight experts; no GPU holds any; beside a kind that has figures."""
    value = looked(plan, "--survive", "5", "--survive", "8", "--survive", "1")
    assert value["losses"][0]["none"] == "6 slots are left for 8 experts a layer"
    assert value["losses"][0]["least_redundant"] == {"kept": 40, "replaced": 16}
    assert value["losses"][1]["none"] == "nothing is left"
    assert value["losses"][2]["least_redundant"] == {"kept": 8, "replaced": 8}
    assert run("loss", plan, "--survive", "5").exit_code == 0


def test_check_lists_experts_that_one_place_alone_holds(plan: Path) -> None:
    """A count and the worst in text, all of them in JSON."""
    assert "experts have all replicas on one node; most load: expert" in run("check", plan).output
    value = json.loads(run("check", plan, "--json").stdout)
    assert value["ok"]
    assert len(value["exposure"]["one_node"]) == len(looked(plan)["exposure"]["one_node"])


@pytest.mark.parametrize("flags", [("--survive", "x"), ("--engine", "none"), ("--load", "absent.csv")])
def test_bad_input_is_one_line(plan: Path, flags: tuple[str, ...]) -> None:
    """Exit 2."""
    result = run("loss", plan, *flags)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
