"""From a plan to the files of an engine: closed where the engine would not serve the plan, unless flags alone are wanted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planner.cli import main
from planner.emission import emit_plan, write_emission
from planner.errors import BadInput


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for Mixtral on two nodes of two GPUs, R = 8."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    words = ["solve", "--model", "mixtral", "--topology", "hgx-h100:2x2", "--redundant", "8", "--method", "greedy", "-o", str(path)]
    assert CliRunner().invoke(main, words).exit_code == 0
    return path


@pytest.mark.parametrize(
    ("engine", "message"),
    [("sglang", "SGLang 0.5.23 does not read a map for mixtral.*--require-map"), ("vllm", "vLLM 0.33.0 does not read a map.*--require-map.*--plugin")],
)
def test_an_engine_that_would_ignore_the_plan_gets_no_map(engine: str, message: str, plan: Path, tmp_path: Path) -> None:
    """The launch without a map and a warning; with --require-map exit 2, the reason and the ways out, and nothing is written."""
    command = ["emit", str(plan), "--engine", engine, "-o", str(tmp_path / "out")]
    refused = CliRunner().invoke(main, [*command, "--require-map"])
    assert refused.exit_code == 2
    assert re.search(message, refused.stderr)
    assert not (tmp_path / "out").exists()
    inspected = ["expert_location.json"] if engine == "sglang" else []
    for folder, flags, files in (("flags", ["--flags-only"], []), ("out", [], inspected)):
        result = CliRunner().invoke(main, [*command[:-1], str(tmp_path / folder), *flags])
        assert result.exit_code == 0
        assert "WARNING" in result.stdout
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == sorted([*files, "launch.sh", "plan.json"])
        assert "expert_location" not in (tmp_path / folder / "launch.sh").read_text().split("set -euo")[1]  # below the comments


@pytest.mark.parametrize("engine", ["trtllm", "vllm_ascend"])
def test_flags_only_does_not_throw_a_usable_map_away(engine: str, plan: Path) -> None:
    """Where the engine serves the plan the flag is refused: it would cost the plan without a word."""
    with pytest.raises(BadInput, match="leave --flags-only out"):
        emit_plan(plan, engine, flags_only=True)


def test_the_plugin_opens_vllm_and_nothing_else(plan: Path, tmp_path: Path) -> None:
    """With it the plan is served, so nothing is refused; the package's files lie in their own folder."""
    write_emission(emit_plan(plan, "vllm", plugin=True), plan, tmp_path)
    rows = json.loads((tmp_path / "vllm_plugin" / "moeplan_vllm_plan" / "plan_map.json").read_text())
    assert rows["moe"] == list(json.loads(plan.read_text())["placement"].values())
    for engine, flags_only in (("sglang", False), ("vllm", True)):
        with pytest.raises(BadInput, match="--plugin is for --engine vllm"):
            emit_plan(plan, engine, plugin=True, flags_only=flags_only)


def test_a_version_that_ignores_the_map_is_refused(plan: Path) -> None:
    """The release that serves decides, and one that is known to differ is refused."""
    assert emit_plan(plan, "trtllm", version="1.0").files["moe_load_balancer.yaml"]
    with pytest.raises(BadInput, match="scheduled for removal"):
        emit_plan(plan, "vllm_ascend", version="0.26.0")


def test_another_replica_rule_than_the_plans_is_pointed_out(plan: Path) -> None:
    """The note names the command that shows what it costs, and commands and files stay as they were."""
    emission = emit_plan(plan, "vllm_ascend")
    assert "evaluate" in emission.notes[-1]
    assert len(emission.commands) == 2


def judged(*words: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CliRunner().invoke(main, ["check", *map(str, words), "--json"]).stdout)
    return found


def test_check_says_what_an_engine_would_make_of_a_map(plan: Path, tmp_path: Path) -> None:
    """A good map of Mixtral: fine for TensorRT-LLM, foreign to SGLang, which would ignore the model's anyway; vLLM reads none."""
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    path = tmp_path / "moe_load_balancer.yaml"
    assert judged(path, "--engine", "trtllm") == {**judged(path), "ok": True, "violations": []}
    rules = {engine: [found["rule"] for found in judged(path, "--engine", engine)["violations"]] for engine in ("sglang", "vllm", "eplb")}
    assert rules == {"sglang": ["format", "ignored"], "vllm": ["ignored"], "eplb": ["format"]}
    assert [found["rule"] for found in judged(plan, "--engine", "vllm")["violations"]] == ["ignored"]


def test_check_gives_each_violation_its_place(plan: Path, tmp_path: Path) -> None:
    """Rule, layer, GPU and expert, for scripts."""
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    path = tmp_path / "moe_load_balancer.yaml"
    row = json.loads(plan.read_text())["placement"]["7"]
    path.write_text(path.read_text().replace(f"  7: {row}", f"  7: {[9, *row[1:]]}"))
    (found,) = judged(path, "--model", "mixtral", "--ep", "4")["violations"]
    assert found == {"rule": "range", "text": "layer 7, slot 0: expert id 9 is outside 0..7", "layer": 7, "gpu": 0, "expert": 9}
    path.write_text(path.read_text().replace(f"  7: {[9, *row[1:]]}", f"  7: {[row[1], row[1], *row[2:]]}"))
    assert {"rule": "distinct", "layer": 7, "gpu": 0, "expert": row[1]}.items() <= judged(path, "--model", "mixtral", "--ep", "4")["violations"][-1].items()
