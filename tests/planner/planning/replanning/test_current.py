"""What `solve --from` and `--max-moves` take, what they refuse in one line, and what they print."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from planner.base import BadInput
from planner.cli import main
from planner.maps.convert import convert_rows
from planner.model import find_model
from planner.planning.replanning.current import parse_moves, read_running

SMALL = ("--model", "mixtral", "--topology", "hgx-h100:2x2", "--context", "256", "--method", "greedy")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def fault(*arguments: str | Path) -> str:
    """The one line that a fault prints."""
    result = run("solve", *arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan by `linear`, which leaves something to win."""
    path = tmp_path_factory.mktemp("plans") / "old.json"
    assert run("solve", *SMALL[:-1], "linear", "--redundant", "8", "-o", path).exit_code == 0
    return path


def test_a_share_counts_all_slots() -> None:
    """7 % of 32 layers of 16 slots, rounded down; all; a bare number is moves."""
    assert [parse_moves(text, 512) for text in ("7%", "100 %", "0%", "2.5%", "20")] == [35, 512, 0, 12, 20]


@pytest.mark.parametrize("text", ["-1", "101%", "half", "3.5", "", "%", "1e3"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    """With what it could be."""
    with pytest.raises(BadInput, match="a whole number of moves over all layers, or a share of all slots"):
        parse_moves(text, 512)


def test_a_limited_re_plan(previous: Path, tmp_path: Path) -> None:
    """The plan holds its moves, no more than allowed; R is the previous plan's; the file passes the judge,
    and the text says what the moves take.
    """
    result = run(
        "solve", *SMALL, "--from", previous, "--max-moves", "5%", "--details", "-o", tmp_path / "new.json"
    )
    assert result.exit_code == 0, result.output
    value = json.loads((tmp_path / "new.json").read_text())
    moves = value["moves"]
    assert value["redundant"] == 8
    assert 0 < moves["moved_slots"] <= moves["allowed"] == 25
    assert len(moves["transfers"]) == moves["moved_slots"]
    assert (
        moves["bytes"]
        == sum(wave["bytes"] for wave in moves["waves"])
        == moves["moved_slots"] * value["memory"]["expert_bytes"]
    )
    assert "slots move" in result.output
    assert "previous plan" in result.output
    assert run("check", tmp_path / "new.json").exit_code == 0


def test_moves_of_the_file_lead_to_its_placement(previous: Path) -> None:
    """[wave, layer, expert, source, target, slot] applied to the old file's rows gives the new rows."""
    value = json.loads(run("solve", *SMALL, "--from", previous, "--max-moves", "20", "--json").stdout)
    rows = json.loads(previous.read_text())["placement"]
    for _, layer, expert, source, target, slot in value["moves"]["transfers"]:
        assert target == slot // value["slots_per_gpu"] != source
        rows[str(layer)][slot] = expert
    assert rows == value["placement"]


def test_no_moves_allowed_keeps_the_plan(previous: Path) -> None:
    """And says so."""
    result = run("solve", *SMALL, "--from", previous, "--max-moves", "0", "--details")
    assert "nothing moves (allowed: 0)" in result.output
    value = json.loads(run("solve", *SMALL, "--from", previous, "--max-moves", "0", "--json").stdout)
    assert value["placement"] == json.loads(previous.read_text())["placement"]


@pytest.mark.parametrize("engine", ["trtllm", "vllm_ascend", "sglang"])
def test_maps_of_engines_are_previous_plans(previous: Path, tmp_path: Path, engine: str) -> None:
    """What an engine loads says as much as the plan it came from."""
    name = {"trtllm": "map.yaml", "vllm_ascend": "map.json", "sglang": "map.json"}[engine]
    assert run("convert", previous, "--to", engine, "-o", tmp_path / name).exit_code == 0
    first, second = (
        json.loads(run("solve", *SMALL, "--from", path, "--max-moves", "9", "--json").stdout)
        for path in (previous, tmp_path / name)
    )
    assert first["placement"] == second["placement"]
    assert first["moves"]["transfers"] == second["moves"]["transfers"]


def test_a_plan_of_another_model_is_refused(previous: Path) -> None:
    """With both shapes."""
    line = fault("--model", "olmoe", "--topology", "hgx-h100:2x2", "--from", previous)
    assert (
        "it places mistralai/Mixtral-8x7B-v0.1, 32 layers of 8 experts; allenai/OLMoE-1B-7B-0924 has 16 of 64"
        in line
    )


def test_a_plan_of_another_machine_is_refused(previous: Path) -> None:
    """Ranks would change their nodes."""
    line = fault("--model", "mixtral", "--topology", "hgx-h100", "--from", previous)
    assert "its 4 GPUs are on nodes of 2+2, the machine asked for has 8" in line
    assert "give --ep 4" in line


def test_a_map_of_another_size_is_refused(previous: Path, tmp_path: Path) -> None:
    """A map that does not name its GPUs fails by the rules."""
    assert run("convert", previous, "--to", "trtllm", "-o", tmp_path / "map.yaml").exit_code == 0
    line = fault("--model", "mixtral", "--topology", "hgx-h100:3x2", "--from", tmp_path / "map.yaml")
    assert "not a placement of mistralai/Mixtral-8x7B-v0.1 on 6 GPUs" in line
    assert "16 slots do not divide over 6 GPUs" in line


@pytest.mark.parametrize(
    ("redundant", "needs"),
    [("12", "at least 128 moves to fill the new slots"), ("4", "slots to be given up")],
)
def test_another_r_is_explained(previous: Path, redundant: str, needs: str) -> None:
    """No moves, and another R: what that takes, and the R that fits."""
    line = fault(*SMALL, "--redundant", redundant, "--from", previous, "--max-moves", "0")
    assert needs in line
    assert "use --redundant 8" in line


def test_a_limit_needs_something_to_move_from() -> None:
    """--max-moves alone means nothing."""
    assert "--max-moves 5: moves are counted from a placement that runs; name it with --from" in fault(
        *SMALL, "--max-moves", "5"
    )


def test_what_is_no_map_is_refused(tmp_path: Path) -> None:
    """Neither a plan nor a map."""
    (tmp_path / "other.json").write_text('{"a": 1}')
    assert "not a map we know" in fault(*SMALL, "--from", tmp_path / "other.json")


def test_a_layer_without_a_row_holds_the_trivial_one(tmp_path: Path) -> None:
    """SGLang's map of DeepSeek-V3 has no row for the draft layer, 61: the engine has expert p % E in slot p
    there.
    """
    model = find_model("deepseek-v3")
    row = [slot % 256 for slot in range(287, -1, -1)]
    text = convert_rows(dict.fromkeys(model.moe_layer_ids, row), "sglang", model, 32).text
    (tmp_path / "map.json").write_text(text, encoding="utf-8")
    current = read_running(tmp_path / "map.json", model, 32)
    assert current.placement.layer_ids[-1] == 61
    assert current.placement.expert_LP[-1].tolist() == [slot % 256 for slot in range(288)]
    assert current.placement.expert_LP[0].tolist() == row
    assert current.topology is None
