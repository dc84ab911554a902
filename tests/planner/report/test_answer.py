"""Output that puts the answer first: five lines of 80 columns, names whole, figures that agree."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.table import Table

from planner.cli import main
from planner.model import find_model, model_names
from planner.plan import Plan
from planner.planning import PlanRequest, answer
from planner.problem import Survival
from planner.report.answer import Asked, plan_answer
from planner.report.lines import WIDTH
from planner.report.plan import plan_parts, plan_report

LABELS = ["Plan", "Fits", "Gain", "Limit", "Next"]
LONGEST = sorted(model_names(), key=len)[-3:]


def solved(model: str = "mixtral", machine: str = "hgx-h100:2x2", **asked: Any) -> Plan:
    settings = {"redundant": 8, "method": "greedy", "tokens_per_rank": 32, "context": 256, **asked}
    return answer(PlanRequest(model, machine, **settings))


def shown(renderable: object, width: int) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.mark.parametrize("engine", [None, "sglang", "vllm", "trtllm", "lmdeploy"])
@pytest.mark.parametrize("machine", ["hgx-h100:2x2", "gb200-nvl72:1x4"])
def test_five_lines_of_eighty_columns(machine: str, engine: str | None) -> None:
    """One a question, whatever the engine; the last is a command."""
    plan = solved(machine=machine, engine=engine)
    lines = plan_answer(plan, Asked(Path("plan.json")))
    assert [line.split()[0] for line in lines] == LABELS
    assert all(len(line) <= WIDTH and "\n" not in line for line in lines), lines
    assert "moeplan " in lines[4]
    assert plan.problem.topology.name in lines[0]


@pytest.mark.parametrize("model", LONGEST)
def test_the_longest_names_stay_whole(model: str) -> None:
    """The owner may go where there is no room, the name may not."""
    plan = solved(model, "aws-p6-b200:16", redundant=None, method="linear", engine="tokenspeed")
    lines = plan_answer(plan)
    assert model.rsplit("/", maxsplit=1)[-1] in lines[0]
    assert all(len(line) <= WIDTH for line in lines), lines


def test_a_name_that_fits_nowhere_is_folded() -> None:
    """Not cut, and no line is longer than the terminal."""
    plan = solved()
    name = "a-company/" + "-".join(["very", "long"] * 12) + " of a name " + "x" * 70
    problem = replace(plan.problem, model=replace(plan.problem.model, name=name))
    lines = plan_answer(replace(plan, problem=problem))
    assert all(len(line) <= WIDTH for each in lines for line in each.splitlines()), lines
    assert "x" * 70 in lines[0]


def test_doing_nothing_wins_is_said_and_emit_is_not() -> None:
    """A plan that is the default gains nothing."""
    lines = plan_answer(solved("mixtral", method="linear"))
    assert "Doing nothing wins" in lines[2]
    assert "emit" not in lines[4]


def test_an_assumed_load_is_to_be_recorded() -> None:
    """Whatever an even load says it gains."""
    assert "record" in plan_answer(solved("olmoe"))[4]


CASES: dict[str, dict[str, Any]] = {
    "mean": {},
    "curve": {"redundant": None, "method": "refine"},
    "survive": {"survive": Survival(gpus=1)},
    "engine": {"engine": "sglang"},
}


@pytest.fixture(scope="module", params=CASES)
def plan(request: pytest.FixtureRequest) -> Plan:
    return solved(**CASES[request.param])


def test_no_figure_has_two_values(plan: Plan) -> None:
    """A name in one row of one table has the value that it has wherever that row is named again."""
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for table in _tables(plan):
        keyed = [place == 0 or column.justify == "left" for place, column in enumerate(table.columns)]
        names, rows = [str(column.header) for column in table.columns], zip(*_cells(table), strict=True)
        owner = ""
        for row in rows:
            owner = row[0] or owner
            key = (owner, *(cell for cell, is_key in zip(row[1:], keyed[1:], strict=True) if is_key))
            for name, cell, is_key in zip(names, row, keyed, strict=True):
                assert is_key or seen.setdefault((name, key), cell) == cell, (name, key)


def _cells(table: Table) -> list[list[str]]:
    return [[str(cell) for cell in column.cells] for column in table.columns]


def test_a_name_of_a_figure_stands_in_one_table(plan: Plan) -> None:
    """Else a reader would compare what is not alike: the search's quick figures are called so."""
    names: list[str] = []
    for table in _tables(plan):
        rows = {str(column.header) for column in table.columns if column.justify != "left"}
        names += rows - {"R", "windows", "max/mean", "cross-node", "objective"}  # of other rows, by name
    assert len(names) == len(set(names))


def test_details_hold_everything_and_fit(plan: Plan) -> None:
    """All tables and notes; no row wider than 80 columns, and no word cut."""
    text = shown(plan_report(plan, details=True), WIDTH)
    assert all(len(line.rstrip()) <= WIDTH for line in text.splitlines())
    assert "…" not in text
    for table in _tables(plan):
        assert " ".join(str(table.title).split()) in " ".join(text.split())
    for note in plan.origin.notes:
        assert note in " ".join(text.split())


def test_without_details_warnings_stay_and_the_rest_is_counted(plan: Plan) -> None:
    """Nothing is hidden in silence."""
    warned = replace(plan, origin=replace(plan.origin, notes=("WARNING: look here", "a note", "another")))
    lines = shown(plan_report(warned), WIDTH).splitlines()
    assert lines[5:] == ["WARNING: look here", f"--details shows {len(_tables(plan))} tables and 2 notes"]


def _tables(plan: Plan) -> list[Table]:
    return [part for part in plan_parts(plan) if isinstance(part, Table)]


@pytest.mark.parametrize("columns", ["40", "80", None])
def test_no_name_of_a_list_is_cut(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any width, also in a pipe, where a row is a line."""
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    for words, names in (
        (["model", "list"], model_names()),
        (["topology", "list"], ["aws-p6-b200", "azure-nc96ads-a100-v4"]),
    ):
        text = CliRunner().invoke(main, words).stdout
        assert "…" not in text
        if columns is None:
            assert all(name in text for name in names)
        else:
            assert all(len(line.rstrip()) <= int(columns) for line in text.splitlines())
            assert all(_folded(name, text) for name in names)


def _folded(name: str, text: str) -> bool:
    """Whether the name's letters follow each other down the first column."""
    return name in "".join(_first_cells(text.splitlines()))


def _first_cells(lines: Iterable[str]) -> Iterable[str]:
    return (line.split(" ")[0] for line in lines)


def test_a_model_shows_all_that_the_list_leaves_out() -> None:
    """Widths, draft layers and other names."""
    text = CliRunner().invoke(main, ["model", "show", "deepseek-v3"]).stdout
    spec = find_model("deepseek-v3")
    for word in (spec.name, str(spec.hidden), str(spec.expert_intermediate), "draft layers: 61"):
        assert word in text
