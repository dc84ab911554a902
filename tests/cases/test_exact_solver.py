"""C28: an exact solver that is run again, and one that errs."""

from pathlib import Path

import pytest

from tests.cases.asked import FOUR_GPUS, Made, run, solved, told


def test_c28_cpsat_gives_the_same_bytes_twice(model: Made, save: Made, tmp_path: Path) -> None:
    """A deterministic budget and one worker.

    A limit in seconds is another flag and says that plans may differ.
    """
    load = save("load.json", [list(range(30, 6, -2))])
    question = f"--model {model(12)} --load {load} --redundant 4 {FOUR_GPUS} --method cpsat"
    first, second = (solved(tmp_path / name, question) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert "plans may then differ" in " ".join(run("solve --help").stdout.split())


def test_c28_a_false_infeasible_is_overruled(
    model: Made, save: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greedy start is a witness: the plan stands, with the bound that needs no solver."""
    from ortools.sat.python import cp_model

    asked: list[object] = []

    def denied(_solver: object, question: object) -> int:
        asked.append(question)
        return int(cp_model.INFEASIBLE)

    monkeypatch.setattr(cp_model.CpSolver, "solve", denied)
    load = save("load.json", [[97, 89, 53, 31, 17, 11, 7, 3]])
    plan = told(f"solve --model {model(8)} --load {load} --redundant 4 {FOUR_GPUS} --method cpsat")
    assert asked
    assert sorted(set(plan["placement"]["0"])) == list(range(8))
    assert plan["predicted"]["fitted"]["max_over_mean"] < 1.1
    assert plan["bound"]["max_over_mean"][0] <= plan["predicted"]["fitted"]["max_over_mean"]
