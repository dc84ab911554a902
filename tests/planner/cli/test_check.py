"""`moeplan check` as a person and a script meet it: what is wrong with a file, and by which exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planner.cli import main
from planner.engines import find_engine
from planner.engines.common.verdict import Finding, Verdict
from planner.plan import judged, write_plan
from planner.problem import Problem
from tests.planner.engines.examples import TINY, machine, question, random_placement
from tests.planner.maps.emitted import emitted, rows_of, write_rows

PLACEMENT = random_placement(TINY, 8, 16)


def check(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, words)])


def line(result: Result) -> str:
    """The one line on stderr."""
    (found,) = result.stderr.strip().splitlines()
    return found


@pytest.fixture
def emission(tmp_path: Path) -> Path:
    emitted(tmp_path, "trtllm", TINY, PLACEMENT)
    return tmp_path


def test_rows_that_changed_places_are_no_longer_ok(emission: Path) -> None:
    """Rows 1 and 2 swapped, plan and digests beside the map: exit 1, for the map and for the folder."""
    path, rows = emission / "moe_load_balancer.yaml", rows_of(PLACEMENT)
    assert (check(path).exit_code, check(emission).exit_code) == (0, 0)
    write_rows(emission, "trtllm", TINY, {**rows, 4: rows[5], 5: rows[4]}, 8)
    for file in (path, emission):
        result = check(file)
        assert result.exit_code == 1
        assert "another map than" in line(result)
        assert "layer 4..5" in line(result)


@pytest.mark.parametrize("name", ["plan.json", "moe_load_balancer.yaml", "."])
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--model", "mixtral"),
            "is for tiny, not for mistralai/Mixtral-8x7B-v0.1 (architecture deepseek_v3",
        ),
        (("--ep", "4"), "is for an EP size of 8, not 4"),
    ],
)
def test_another_model_or_ep_size_is_named(
    name: str, flags: tuple[str, ...], words: str, emission: Path
) -> None:
    """Of a plan, of a map beside one and of the folder: exit 1, and nothing else is wrong."""
    result = check(emission / name, *flags)
    assert result.exit_code == 1
    assert words in line(result)
    assert "1 problem" in result.stdout


def test_two_entries_of_the_catalogue_are_two_models(tmp_path: Path) -> None:
    """Though they have one shape."""
    plan = tmp_path / "plan.json"
    words = ["--model", "deepseek-v3", "--topology", "hgx-h100:4x8", "--method", "greedy"]
    assert CliRunner().invoke(main, ["solve", *words, "-o", str(plan)]).exit_code == 0
    assert check(plan, "--model", "deepseek-v3").exit_code == 0
    result = check(plan, "--model", "deepseek-r1")
    assert result.exit_code == 1
    assert line(result).endswith("is for deepseek-ai/DeepSeek-V3, not for deepseek-ai/DeepSeek-R1")


def test_a_broken_rule_is_exit_2(emission: Path) -> None:
    """Whatever else is said of the file."""
    rows = rows_of(PLACEMENT)
    write_rows(emission, "trtllm", TINY, {**rows, 4: [70, *rows[4][1:]]}, 8)
    assert check(emission / "moe_load_balancer.yaml").exit_code == 2
    assert check(emission).exit_code == 2
    assert check(emission, "--ep", "4").exit_code == 2


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "1" + "0" * 400, "-1" + "0" * 4000, "0.5"])
def test_any_number_of_json_is_one_problem(number: str, tmp_path: Path) -> None:
    """Past every float it ended in a traceback."""
    path = tmp_path / "map.json"
    path.write_text(f'{{"physical_to_logical_map": [[0, 1, {number}, 1]]}}')
    result = check(path)
    assert result.exit_code == 2
    assert "layer 0, slot 2: " in line(result)
    assert len(line(result)) < 200 + len(str(path))


def told(*words: str | Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(check(*words, "--json").stdout)
    return value


def test_the_judge_of_launches_is_asked(emission: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it refuses is a violation, and what answers its other rules is shown with their source."""
    findings = (
        Finding("runner", "the experts need a runner", "file.py:1, run", ("--runner", "deep")),
        Finding("tray", "trays have 4 GPUs", "file.py:2, read", refused=True),
    )
    verdict = Verdict("TensorRT-LLM", "1", "mixed", findings)
    monkeypatch.setattr(find_engine("trtllm"), "judge", lambda *_: verdict)
    value = told(emission / "plan.json", "--engine", "trtllm")
    assert [(found["rule"], found["text"]) for found in value["violations"]] == [
        ("tray", "trays have 4 GPUs")
    ]
    assert value["notes"] == ["served with --runner deep: the experts need a runner [file.py:1, run]"]
    assert check(emission / "plan.json", "--engine", "trtllm").exit_code == 2
    assert "plan.json: trays have 4 GPUs" in check(emission, "--engine", "trtllm").stdout


def test_the_role_reaches_the_judge(emission: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a plan for the other half of a pair is refused in one line."""
    engine, roles = find_engine("trtllm"), []

    def judge(_problem: Problem, _version: str | None, role: str) -> Verdict:
        roles.append(role)
        return Verdict("x", "1", role)

    monkeypatch.setattr(engine, "ROLES", ("mixed", "prefill", "decode"))
    monkeypatch.setattr(engine, "judge", judge)
    assert check(emission / "plan.json", "--engine", "trtllm", "--role", "decode").exit_code == 0
    assert roles == ["decode"]
    result = check(emission / "plan.json", "--engine", "trtllm", "--role", "prefill")
    assert result.exit_code == 2
    assert "the plan is for decode" in line(result)


def test_a_map_is_judged_without_a_plan_of_another_name(tmp_path: Path) -> None:
    """Only plan.json is a map's plan."""
    write_plan(judged(question(TINY, machine(8), 16), PLACEMENT), tmp_path / "other.json")
    path = write_rows(tmp_path, "trtllm", TINY, rows_of(random_placement(TINY, 8, 16, seed=1)), 8)
    assert check(path).exit_code == 0
