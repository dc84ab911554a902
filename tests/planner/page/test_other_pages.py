"""Pages of comparisons and sweeps, and of a run beside its plan: figures as in the JSON, names as text."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planner.base import BadInput
from planner.cli import main
from planner.page import page_of
from planner.page.validation import RUN
from planner.plan import read_plan, write_plan
from planner.planning import PlanRequest, answer
from planner.problem import Survival
from probes.dispatch.outcome_dict import outcome_to_dict
from tests.planner.page.pages import Page, standing
from tests.probes.dispatch.test_outcome import TOLD, outcome
from tests.probes.dispatch.verdict.runs import Machine, make_timed

EVIL = "</title><script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan without an engine."""
    made = tmp_path_factory.mktemp("pages")
    write_plan(
        answer(PlanRequest("mixtral", "hgx-h100:2x2", method="linear", redundant=0)), made / "plan.json"
    )
    return made


def printed(folder: Path, name: str, *words: str) -> Path:
    """What a command prints, as a file."""
    found = CliRunner().invoke(main, [*words, "--json"])
    assert found.exit_code == 0, found.output
    path = folder / name
    path.write_text(found.stdout)
    return path


def check(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Every figure is as in the file, and a name of it cannot act."""
    value = json.loads(path.read_text())
    page = Page(page_of(path))
    assert page.figures
    for where, figure in page.figures:
        assert figure == standing(value, where), where
    change(value)
    path.write_text(json.dumps(value))
    altered = Page(page_of(path))
    assert len(altered.named("script")) == 1
    assert EVIL in altered.text


def test_a_comparison(folder: Path) -> None:
    machines = ("--topology", "hgx-h100:2x2", "--topology", "hgx-h200:2x2")
    path = printed(folder, "compare.json", "compare", str(folder / "plan.json"), *machines)
    assert json.loads(path.read_text())["answer"] in Page(page_of(path)).text

    def put_in(value: dict[str, Any]) -> None:
        value["sides"][0]["name"] = value["load"] = value["answer"] = EVIL
        value["notes"] = [EVIL]

    check(path, put_in)
    with pytest.raises(BadInput, match="belongs to a plan"):
        page_of(path, folder / "plan.json")


def test_a_sweep(folder: Path) -> None:
    path = printed(
        folder, "sweep.json", "sweep", "--model", "mixtral", "--topology", "hgx-h100:1x4", "--ep", "2,4"
    )

    def put_in(value: dict[str, Any]) -> None:
        value["phases"]["decode"][0]["machine"] = value["model"] = EVIL
        value["phases"][EVIL] = value["phases"].pop("decode")

    check(path, put_in)


@pytest.mark.parametrize("kind", ["compare", "sweep"])
def test_a_file_that_lacks_something_is_one_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"schema": f"moeplan/{kind}/1"}))
    with pytest.raises(BadInput, match=r"x\.json: '\w+' is missing"):
        page_of(path)


def test_what_validate_prints_is_what_is_read() -> None:
    """With and without a verdict."""
    timed = make_timed(TOLD, Machine(TOLD), layers=2)
    for judged in (True, False):
        RUN.check(json.loads(json.dumps(outcome_to_dict(outcome(timed, judged=judged)))), "run.json")


def run_of(plan_file: Path) -> dict[str, Any]:
    """A run of the plan, as if it had been made: figures of another, names of this one."""
    timed = make_timed(TOLD, Machine(TOLD), layers=2)
    value: dict[str, Any] = json.loads(json.dumps(outcome_to_dict(outcome(timed))))
    plan = json.loads(plan_file.read_text())
    topology = read_plan(plan_file).problem.topology
    names = [one.name for one in topology.resources]
    return {
        **value,
        "hosts": ["a", "a", "b", "b"],
        "layers": [0, 1],
        "resources": names,
        "transport": plan["workload"]["transport"],
    }


def test_a_run_stands_beside_the_prediction(folder: Path) -> None:
    """Its figures are those of its own file, and are not taken for the plan's."""
    path, value = folder / "run.json", run_of(folder / "plan.json")
    path.write_text(json.dumps(value))
    page = Page(page_of(folder / "plan.json", path))
    told = [(where, figure) for where, figure in page.figures if where.startswith("verdict.")]
    assert told
    for where, figure in told:
        assert figure == standing(value, where)
    assert value["answer"] in page.text
    value["answer"] = value["checks"][0]["detail"] = EVIL
    path.write_text(json.dumps(value))
    assert len(Page(page_of(folder / "plan.json", path)).named("script")) == 1


@pytest.mark.parametrize(
    ("key", "other", "said"),
    [
        ("resources", ["node0/nic0/out"], "links of other names"),
        ("hosts", ["a"], "1 ranks"),
        ("transport", "slot2", "transport 'slot2'"),
        ("layers", [0, 99], "layers [0, 99]"),
    ],
)
def test_a_run_of_something_else_is_refused(key: str, other: object, said: str, folder: Path) -> None:
    path = folder / "other.json"
    path.write_text(json.dumps(run_of(folder / "plan.json") | {key: other}))
    with pytest.raises(BadInput) as fault:
        page_of(folder / "plan.json", path)
    assert said in str(fault.value)


def test_a_plan_for_no_engine_names_those_that_would_serve_it(folder: Path) -> None:
    text = Page(page_of(folder / "plan.json")).text
    assert "The plan was made for no engine. Those that would serve this model by a plan: " in text
    assert "trtllm" in text.partition("The plan was made for no engine")[2]


def test_a_replan_shows_its_moves_and_a_plan_that_survives_its_losses(folder: Path) -> None:
    request = PlanRequest("mixtral", "hgx-h100:2x2", method="linear", redundant=4)
    first = write_plan(answer(request), folder / "first.json")
    again = write_plan(answer(replace(request, previous=first, method="greedy")), folder / "again.json")
    moved = json.loads(again.read_text())["moves"]["moved_slots"]
    assert moved
    assert ("moves.moved_slots", float(moved)) in Page(page_of(again)).figures
    survives = PlanRequest("olmoe", "hgx-h100:1x2", method="linear", redundant=64, survive=Survival(gpus=1))
    page = Page(page_of(write_plan(answer(survives), folder / "surviving.json")))
    assert "Whole steps after a loss" in page.tables
