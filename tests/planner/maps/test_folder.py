"""A folder that `emit` wrote, judged as a whole: every file that is not as it was emitted is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.engines import engine_names, plugin_engines
from planner.maps import check_file, emit_plan, write_emission
from planner.maps.manifest import MANIFEST
from planner.plan import judged, write_plan
from tests.planner.engines.examples import TINY, machine, question, random_placement
from tests.planner.maps.emitted import emitted, rows_of, write_rows

PLACEMENT = random_placement(TINY, 8, 16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An emission with TensorRT-LLM's map."""
    emitted(tmp_path, "trtllm", TINY, PLACEMENT)
    return tmp_path


def found(folder: Path, **asked: Any) -> list[tuple[str, str]]:
    """Rule and first word of each violation."""
    return [(one.rule, one.text.split()[0].rstrip(":")) for one in check_file(folder, **asked).violations]


def test_an_untouched_emission_is_ok(folder: Path) -> None:
    """Nothing is wrong, nothing unchecked, and its maps are named."""
    report = check_file(folder)
    assert (report.ok, report.notes, report.unchecked) == (True, (), ())
    assert report.facts["maps"] == "moe_load_balancer.yaml"


@pytest.mark.parametrize("name", ["launch.sh", "plan.json", "moe_load_balancer.yaml"])
def test_a_missing_file_is_named(name: str, folder: Path) -> None:
    """Every file of the list, and nothing else is wrong."""
    (folder / name).unlink()
    assert found(folder) == [("missing", name)]
    assert check_file(folder).mistaken


@pytest.mark.parametrize("name", ["launch.sh", "plan.json"])
def test_a_changed_file_is_named(name: str, folder: Path) -> None:
    """One more line feed is enough; the map is still the plan's."""
    with (folder / name).open("a") as out:
        out.write("\n")
    assert found(folder) == [("changed", name)]
    assert check_file(folder).mistaken


def test_another_map_is_named_by_its_file(folder: Path) -> None:
    """With the layers, as for the file alone; a map that was laid out anew is a note."""
    rows = rows_of(PLACEMENT)
    path = write_rows(folder, "trtllm", TINY, {**rows, 3: rows[5], 5: rows[3]}, 8)
    (problem,) = check_file(folder).problems
    assert problem.startswith("moe_load_balancer.yaml: another map than")
    assert "layer 3, 5" in problem
    write_rows(folder, "trtllm", TINY, rows, 8)
    path.write_text(f"# mine\n{path.read_text()}")
    report = check_file(folder)
    assert report.ok
    assert report.notes[0].startswith("moe_load_balancer.yaml: its bytes are not those")


def test_files_of_another_hand_are_noted(folder: Path) -> None:
    """They do no harm, and are named up to a number."""
    for number in range(7):
        (folder / f"log{number}.txt").write_text("mine")
    report = check_file(folder)
    assert report.ok
    assert report.notes == (
        "not of this emission: log0.txt, log1.txt, log2.txt, log3.txt, log4.txt and 2 more",
    )


def test_a_list_without_launch_script_or_plan_is_no_emission(folder: Path) -> None:
    """What was taken off the list is missing, though the file lies there."""
    value = json.loads((folder / MANIFEST).read_text())
    del value["files"]["launch.sh"], value["files"]["plan.json"]
    (folder / MANIFEST).write_text(json.dumps(value))
    assert found(folder) == [("missing", "launch.sh"), ("missing", "plan.json")]


def test_a_list_cannot_name_files_elsewhere(folder: Path) -> None:
    """Nothing outside the folder is read; such a name is missing."""
    (folder.parent / "outside.txt").write_text("mine")
    value = json.loads((folder / MANIFEST).read_text())
    value["files"] |= dict.fromkeys(("../outside.txt", "/etc/passwd", "../moe_load_balancer.yaml"), "0" * 64)
    (folder / MANIFEST).write_text(json.dumps(value))
    assert [rule for rule, _ in found(folder)] == ["missing"] * 3


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"schema": "moeplan/emission/2", "files": {}}', '{"schema": "x"}',
                '{"schema": "moeplan/emission/1", "files": {"launch.sh": 1e400}}']
)  # fmt: skip
def test_a_damaged_list_is_one_line(content: str, folder: Path) -> None:
    """Of the folder and of each file in it."""
    (folder / MANIFEST).write_text(content)
    for path in (folder, folder / "moe_load_balancer.yaml"):
        with pytest.raises(BadInput, match=r"moeplan-emission\.json") as refused:
            check_file(path)
        assert "\n" not in str(refused.value)


def test_a_damaged_file_is_named_and_the_others_are_judged(folder: Path) -> None:
    """A plan that cannot be read leaves the map without its plan."""
    (folder / "plan.json").write_text("{")
    (folder / "moe_load_balancer.yaml").write_text("num_slots: [")
    rules = [one.rule for one in check_file(folder).violations]
    assert rules == ["changed", "format", "format"]


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    """With what to give instead."""
    with pytest.raises(BadInput, match="give a plan, a map, or a folder that `emit` wrote"):
        check_file(tmp_path)


def test_what_is_said_of_the_folder_is_said_once(folder: Path) -> None:
    """Another model or EP size contradicts plan and map alike."""
    assert found(folder, model_name="mixtral") == [("other-model", "plan.json")]
    assert found(folder, ep=4) == [("other-ep", "plan.json")]


def test_the_engine_that_the_folder_was_not_made_for(folder: Path) -> None:
    """It would not read the map."""
    assert ("format", "moe_load_balancer.yaml") in found(folder, engine="sglang")


def served(engine: str, **flags: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        plan = folder.parent / "made.json"
        placement = random_placement(TINY, 8, 0)
        write_plan(judged(question(TINY, machine(8), 0), placement), plan)
        write_emission(emit_plan(plan, engine, **flags), plan, folder)

    return write


WAYS = {name: served(name) for name in engine_names()} | {
    f"{name} with plugin": served(name, plugin=True) for name in plugin_engines()
}


@pytest.mark.parametrize("way", WAYS)
def test_what_every_engine_emits_is_ok(way: str, tmp_path: Path) -> None:
    """The folder and each file that is a map, also in a folder below; what is refused leaves no folder."""
    try:
        WAYS[way](tmp_path / "out")
    except BadInput:  # this machine is not that engine's
        assert not (tmp_path / "out").exists()
        return
    report = check_file(tmp_path / "out")
    assert (report.ok, report.notes) == (True, ()), report.text()
    for name in str(report.facts["maps"]).split(", "):
        if name != "none":
            assert check_file(tmp_path / "out" / name).facts["same rows as"]


def test_the_plugins_map_is_held_against_the_plan_above_it(tmp_path: Path) -> None:
    """It lies two folders below its plan, and vLLM with it serves the plan."""
    WAYS["vllm with plugin"](tmp_path / "out")
    path = tmp_path / "out" / "vllm_plugin" / "moeplan_vllm_plan" / "plan_map.json"
    assert "ignored" not in [rule for rule, _ in found(tmp_path / "out", engine="vllm")]
    value = json.loads(path.read_text())
    value["moe"][0], value["moe"][1] = value["moe"][1], value["moe"][0]
    path.write_text(json.dumps(value))
    assert check_file(path).problems[0].startswith(f"another map than {tmp_path / 'out' / 'plan.json'}'s")
    assert found(tmp_path / "out") == [("other-map", "vllm_plugin/moeplan_vllm_plan/plan_map.json")]


def test_a_pair_is_judged_by_halves(tmp_path: Path) -> None:
    """Both folders and the router; a half or router that is gone is named."""
    for half in ("prefill", "decode"):
        (tmp_path / half).mkdir()
        emitted(tmp_path / half, "trtllm", TINY, PLACEMENT)
    assert found(tmp_path) == [("missing", "router.sh")]
    (tmp_path / "router.sh").write_text("true\n")
    assert check_file(tmp_path).ok
    (tmp_path / "decode" / "launch.sh").write_text("false\n")
    assert check_file(tmp_path).problems[0].startswith("decode: launch.sh was changed")
    (tmp_path / "prefill" / MANIFEST).unlink()
    assert found(tmp_path)[0] == ("missing", "prefill")
