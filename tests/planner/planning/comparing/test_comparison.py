"""Plans, maps, machines and engines side by side: figures as `evaluate` has them, the answer after them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from planner.base import BadInput
from planner.cli import main
from planner.planning import Anew, CompareRequest, Comparison, compare
from planner.planning.evaluation import re_evaluate
from planner.report.comparison import answer_line, comparison_table
from planner.report.lines import WIDTH

COMMON = (
    "--model",
    "mixtral",
    "--topology",
    "hgx-h100:2x4",
    "--redundant",
    "8",
    "--engine",
    "trtllm",
    "--context",
    "256",
)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two plans of one question, the map of the second, and a prefill plan."""
    found = tmp_path_factory.mktemp("sides")
    np.savez(found / "skewed.npz", counts=np.tile(np.array([320, 300, 200, 60, 50, 40, 20, 10]), (4, 32, 1)))
    load = ("--load", str(found / "skewed.npz"))
    for words in (
        ("solve", *COMMON, *load, "--method", "linear", "-o", found / "a.json"),
        ("solve", *COMMON, *load, "--method", "greedy", "-o", found / "b.json"),
        (
            "solve",
            *COMMON,
            "--phase",
            "prefill",
            "--tokens-per-rank",
            "512",
            "--method",
            "linear",
            "-o",
            found / "prefill.json",
        ),
        ("emit", found / "b.json", "--engine", "trtllm", "-o", found / "out"),
    ):
        result = run(*words)
        assert result.exit_code == 0, result.output
    return found


def sides(folder: Path, *names: str, **asked: Any) -> Comparison:
    return compare(CompareRequest(tuple(folder / name for name in names), **asked))


def test_the_balanced_plan_wins_on_a_skewed_load(folder: Path) -> None:
    """By the step's own figures, which are those of `evaluate` on the same load."""
    found = sides(folder, "a.json", "b.json", anew=Anew((folder / "skewed.npz",)))
    assert found.best == 1
    for side, name in zip(found.sides, ("a.json", "b.json"), strict=True):
        again = re_evaluate(folder / name, Anew((folder / "skewed.npz",)))[1]
        assert side.cost.total_seconds == again.total_seconds
    assert found.sides[1].moves is not None
    assert found.sides[1].differing == len(found.sides[1].moves.transfers) > 0
    line = answer_line(found)
    assert line.startswith("Best   B is ")
    assert len(line) <= WIDTH
    assert f"{found.gain(1):.1%} faster than A" in line


def test_a_map_is_its_plan(folder: Path) -> None:
    """The same rows: a tie, and no slot differs."""
    found = sides(folder, "b.json", "out/moe_load_balancer.yaml")
    assert found.gain(1) == 0
    assert found.sides[1].differing == 0
    assert "A tie" in answer_line(found)
    assert sides(folder, "b.json", "b.json").tie(1)


def test_maps_alone_need_their_model_and_machine(folder: Path) -> None:
    """And then give what the plan gives."""
    name = "out/moe_load_balancer.yaml"
    with pytest.raises(BadInput, match="give --model and --topology"):
        sides(folder, name, name)
    found = sides(folder, name, "b.json", model="mixtral", topologies=("hgx-h100:2x4",), engines=("trtllm",))
    assert found.sides[0].differing == found.sides[1].differing == 0
    assert found.tie(1)


def test_machines_and_engines_vary_one_at_a_time(folder: Path) -> None:
    """Each side is the plan there; two things at once are refused, and so is nothing."""
    machines = sides(folder, "a.json", topologies=("hgx-h100:2x4", "hgx-h200:1"))
    assert [side.problem.topology.name for side in machines.sides] == ["hgx-h100:2x4", "hgx-h200:1"]
    engines = sides(folder, "a.json", engines=("sglang", "vllm", "trtllm"))
    assert [side.engine for side in engines.sides] == ["sglang", "vllm", "trtllm"]
    assert len({side.problem.replica_rule for side in engines.sides}) == 3
    with pytest.raises(BadInput, match="nothing varies"):
        sides(folder, "a.json")
    with pytest.raises(BadInput, match="placement and engine vary"):
        sides(folder, "a.json", "b.json", engines=("sglang", "vllm"))


def test_what_the_model_cannot_tell_is_a_tie(folder: Path) -> None:
    """Between machines its error counts; between placements on one it is common to both."""
    found = sides(folder, "a.json", topologies=("hgx-h100:2x4", "hgx-h200:1"))
    error = max(side.whole.error_share or 0 for side in found.sides)
    assert found.tie(1) == (abs(found.gain(1)) <= max(error, 0.01))
    placements = sides(folder, "a.json", "b.json")
    assert placements.tie(1) == (abs(placements.gain(1)) <= 0.01)


def test_halves_of_a_pair_are_not_compared(folder: Path) -> None:
    """A decode plan beside a prefill plan says nothing, until one phase is asked of both."""
    with pytest.raises(BadInput, match="is for prefill"):
        sides(folder, "a.json", "prefill.json")
    assert sides(folder, "a.json", "prefill.json", anew=Anew(phase="prefill")).tie(0)


def test_the_table_and_the_json_hold_the_same(folder: Path) -> None:
    """One column a side; each figure once; the answer is the first line of both."""
    words = ("compare", folder / "a.json", folder / "b.json")
    value = json.loads(run(*words, "--json").stdout)
    text = run(*words).stdout
    assert value["answer"] in " ".join(text.split())
    assert [side["name"] for side in value["sides"]] == [str(folder / "a.json"), str(folder / "b.json")]
    table = comparison_table(sides(folder, "a.json", "b.json"))
    names = list(table.columns[0].cells)
    assert len(names) == len(set(names))
    assert len(table.columns) == 3
