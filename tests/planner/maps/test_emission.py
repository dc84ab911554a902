"""From a plan to the files of an engine: none where it would not serve the plan, unless flags are asked."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.base import BadInput, write_json
from planner.cli import main
from planner.maps import check_file, emit_plan, write_emission
from planner.maps.manifest import MANIFEST
from planner.plan import judged, plan_to_dict, read_plan

WITHOUT_A_MAP = ["launch.sh", MANIFEST, "plan.json", "validate.sh"]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for Mixtral on two nodes of two GPUs, R = 8."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    words = [
        "solve",
        "--model",
        "mixtral",
        "--topology",
        "hgx-h100:2x2",
        "--redundant",
        "8",
        "--context",
        "512",
        "--method",
        "greedy",
        "-o",
        str(path),
    ]
    assert CliRunner().invoke(main, words).exit_code == 0
    return path


def test_an_engine_that_would_ignore_the_map_gets_nothing(plan: Path, tmp_path: Path) -> None:
    """Exit 2, one line with the reason and every way out, and no file;
    --flags-only gives the launch without the map and says so.
    """
    command = ["emit", str(plan), "--engine", "sglang", "-o", str(tmp_path / "out")]
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    (line,) = refused.stderr.strip().splitlines()
    for words in (
        "SGLang 0.5.23 does not read a map for mixtral",
        "nothing was written",
        "--flags-only",
        "--engine trtllm or ",
        "--engine vllm --plugin would",
    ):
        assert words in line
    assert not (tmp_path / "out").exists()
    result = CliRunner().invoke(main, [*command, "--flags-only"])
    assert result.exit_code == 0
    assert result.stdout.startswith("WARNING: SGLang 0.5.23 does not read a map for mixtral")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == WITHOUT_A_MAP
    assert "expert_location" not in (tmp_path / "out" / "launch.sh").read_text()


def test_a_release_that_would_ignore_the_map_gets_nothing(plan: Path) -> None:
    """The release that serves decides, and is named: TensorRT-LLM 1.0 has no gpt_oss in its list of models,
    later ones refuse its biases. The engine is not offered in its own place.
    """
    problem, placement, _ = read_plan(plan)
    model = replace(problem.model, architecture="gpt_oss")
    other = write_json(
        plan.with_name("gpt.json"), plan_to_dict(judged(replace(problem, model=model), placement))
    )
    instead = "--flags-only writes the launch without the map, and .*--engine sglang.* would"
    for version, reason in (("1.0", "list of models"), (None, "biases")):
        with pytest.raises(BadInput, match=rf"{reason}.*{instead}"):
            emit_plan(other, "trtllm", version=version)


def test_an_engine_without_a_map_file_gets_its_flags(plan: Path, tmp_path: Path) -> None:
    """vLLM: redundant experts and flags are what there is to emit, nothing can be misread, and the first
    line says that the placement is not used.
    """
    for flags in ([], ["--flags-only"]):
        result = CliRunner().invoke(
            main, ["emit", str(plan), "--engine", "vllm", "-o", str(tmp_path), *flags]
        )
        assert result.exit_code == 0
        assert result.stdout.startswith(
            "WARNING: vLLM 0.33.0 does not read a map: the plan's placement is not used"
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == WITHOUT_A_MAP
        assert '"num_redundant_experts":8' in (tmp_path / "launch.sh").read_text()


def test_a_map_of_an_earlier_emission_does_not_stay(plan: Path, tmp_path: Path) -> None:
    """What the folder's list names, this emission does not write and nobody changed is removed;
    a file of another hand stays.
    """
    write_emission(emit_plan(plan, "vllm", plugin=True), plan, tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    written = write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {str(path.relative_to(tmp_path)) for path in written} | {"mine.txt"}
    assert "vllm_plugin/pyproject.toml" not in names


WAYS: list[dict[str, Any]] = [
    {"engine": "trtllm"},
    {"engine": "vllm"},
    {"engine": "vllm", "plugin": True},
    {"engine": "sglang", "flags_only": True},
]


@settings(max_examples=15)
@given(ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=4))
def test_a_folder_holds_its_last_emission_alone(
    ways: list[dict[str, Any]], plan: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever was emitted into it before."""
    folder = tmp_path_factory.mktemp("out")
    written = [write_emission(emit_plan(plan, **way), plan, folder) for way in ways][-1]
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == sorted(written)


def test_a_changed_file_of_an_earlier_emission_is_not_removed(plan: Path, tmp_path: Path) -> None:
    """It is refused by its name before anything is written, and stays as it is."""
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    expert_map, launch = tmp_path / "moe_load_balancer.yaml", (tmp_path / "launch.sh").read_bytes()
    expert_map.write_text("mine")
    with pytest.raises(
        BadInput, match=r"moe_load_balancer\.yaml: an earlier emission wrote it, it was changed since"
    ):
        write_emission(emit_plan(plan, "vllm"), plan, tmp_path)
    assert (expert_map.read_text(), (tmp_path / "launch.sh").read_bytes()) == ("mine", launch)


def test_a_list_cannot_name_files_elsewhere(plan: Path, tmp_path: Path) -> None:
    """A forged list does not make emit remove a file outside the folder, and a damaged one is refused."""
    outside, folder = tmp_path / "outside.txt", tmp_path / "out"
    outside.write_text("mine")
    folder.mkdir()
    digest = hashlib.sha256(b"mine").hexdigest()
    (folder / MANIFEST).write_text(
        json.dumps(
            {"schema": "moeplan/emission/1", "files": {"../outside.txt": digest, str(outside): digest}}
        )
    )
    write_emission(emit_plan(plan, "trtllm"), plan, folder)
    assert outside.read_text() == "mine"
    (folder / MANIFEST).write_text("[]")
    with pytest.raises(BadInput, match=r"moeplan-emission\.json: not the list of an emission"):
        write_emission(emit_plan(plan, "trtllm"), plan, folder)


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


def told(*words: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CliRunner().invoke(main, ["check", *map(str, words), "--json"]).stdout)
    return found


def test_check_says_what_an_engine_would_make_of_a_map(plan: Path, tmp_path: Path) -> None:
    """A good map of Mixtral: fine for TensorRT-LLM, foreign to SGLang, which would ignore the model's
    anyway; vLLM reads none.
    """
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    path = tmp_path / "moe_load_balancer.yaml"
    assert told(path, "--engine", "trtllm") == {**told(path), "ok": True, "violations": []}
    rules = {
        engine: [found["rule"] for found in told(path, "--engine", engine)["violations"]]
        for engine in ("sglang", "vllm", "eplb")
    }
    assert rules == {"sglang": ["format", "ignored"], "vllm": ["ignored"], "eplb": ["format"]}
    assert [found["rule"] for found in told(plan, "--engine", "vllm")["violations"]] == ["ignored"]


def test_check_gives_each_violation_its_place(plan: Path, tmp_path: Path) -> None:
    """Rule, layer, GPU and expert, for scripts."""
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    path = tmp_path / "moe_load_balancer.yaml"
    row = json.loads(plan.read_text())["placement"]["7"]
    path.write_text(path.read_text().replace(f"  7: {row}", f"  7: {[9, *row[1:]]}"))
    (found,) = told(path, "--model", "mixtral", "--ep", "4")["violations"]
    assert found == {
        "rule": "range",
        "text": "layer 7, slot 0: expert id 9 is outside 0..7",
        "layer": 7,
        "gpu": 0,
        "expert": 9,
    }
    path.write_text(path.read_text().replace(f"  7: {[9, *row[1:]]}", f"  7: {[row[1], row[1], *row[2:]]}"))
    assert {"rule": "distinct", "layer": 7, "gpu": 0, "expert": row[1]}.items() <= told(
        path, "--model", "mixtral", "--ep", "4"
    )["violations"][-1].items()


@pytest.mark.parametrize("name", ["launch.sh", "plan.json", "moe_load_balancer.yaml"])
def test_a_file_that_is_not_ours_or_was_edited_is_never_overwritten_unasked(
    name: str, plan: Path, tmp_path: Path
) -> None:
    """Of another hand, then edited after an emission; the same bytes are no reason to refuse."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(BadInput, match=f"{name}: is there and no emission wrote it"):
        write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path, force=True)
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    with (tmp_path / name).open("a") as file:
        file.write(" ")
    with pytest.raises(BadInput, match=f"{name}: an earlier emission wrote it, it was changed since"):
        write_emission(emit_plan(plan, "trtllm"), plan, tmp_path)
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path, force=True)
    assert check_file(tmp_path).ok


def test_the_folder_one_stands_in_is_not_replaced(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell would be left in a folder that is gone."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="is the folder you are in"):
        write_emission(emit_plan(plan, "trtllm"), plan, Path())


def test_links_and_folders_of_others_stay(plan: Path, tmp_path: Path) -> None:
    """Below and above ours, with what they point at, and the modes that a person gave."""
    folder = tmp_path / "out"
    (folder / "logs" / "empty").mkdir(parents=True)
    (folder / "logs" / "today").write_text("log")
    (folder / "link").symlink_to("logs")
    (tmp_path / "name").symlink_to("out")
    write_emission(emit_plan(plan, "trtllm"), plan, tmp_path / "name")
    (folder / "launch.sh").chmod(0o755)
    write_emission(emit_plan(plan, "trtllm"), plan, folder)
    assert (folder / "link" / "today").read_text() == "log"
    assert (folder / "logs" / "empty").is_dir()
    assert (folder / "launch.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "name").is_symlink()
