"""`import planner`: what it offers is pinned, quick to import, and does what its page says."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import planner
from tests.places import ROOT

OFFERED = {
    *("BadInput", "Infeasible", "ModelSpec", "Topology", "LoadProfile", "Trace", "Placement", "Problem"),
    *(
        "Workload",
        "Violation",
        "Cost",
        "Plan",
        "SavedPlan",
        "Emission",
        "ImportHints",
        "ValidateSettings",
        "Contender",
    ),
    *("find_model", "read_topology", "import_topology", "read_load", "solve", "evaluate", "validate"),
    *("plan_to_dict", "read_plan", "write_plan", "default_placement", "violations", "predict", "time_bound"),
    *("emit", "write_emission", "check", "convert", "whole_step", "WholeStep"),
}


def test_what_is_offered_is_pinned() -> None:
    """A name that goes breaks somebody's notebook: change this list, the page and the change log together."""
    assert set(planner.__all__) == OFFERED
    assert set(dir(planner)) == {*OFFERED, "__version__"}


@pytest.mark.parametrize("name", sorted(OFFERED))
def test_every_name_is_there(name: str) -> None:
    assert getattr(planner, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'planner' has no attribute 'sovle'"):
        planner.sovle  # noqa: B018


def test_importing_it_loads_nothing() -> None:
    """Rooms come when a name is asked for."""
    code = "import sys, planner; print([name for name in sys.modules if name.startswith('planner.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of docs/python.md, in order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False)
    assert (failed, tried > 10) == (0, True)


def test_the_page_names_everything() -> None:
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    assert [name for name in sorted(OFFERED) if f"`{name}`" not in page] == []


def test_solve_says_what_it_does_not_take() -> None:
    with pytest.raises(planner.BadInput, match="solve takes no 'redundnat'"):
        planner.solve("mixtral", redundnat=8)
