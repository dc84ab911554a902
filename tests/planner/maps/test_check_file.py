"""Files given to the judge of maps: our own pass, and what is no map is refused in one line."""

import json
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.maps import check_file
from planner.maps.check import check_value
from planner.maps.read import read_value
from planner.maps.report import MapReport
from planner.model import ModelSpec
from tests.planner.engines.examples import TINY, machine, question, random_placement


def check_map(path: Path, model: ModelSpec | None = None, gpus: int | None = None) -> MapReport:
    return check_value(read_value(path), str(path), model, gpus)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("map.json", b"", "empty"),
        ("map.json", b'{"physical_to_logical_map": [[0, 1', "line 1"),
        ("map.pt", b"PK\x03\x04\x80\x81\xff", "binary"),
        ("map.yaml", b"num_slots: [1, 2", "line 2"),
        ("map.yaml", b"num_slots: &a 4\ninitial_global_assignments: *a", "aliases"),
        ("map.yaml", b"num_slots: 4\nnum_slots: 5", "twice"),
        ("map.yaml", b"initial_global_assignments:\n  3: [0]\n  3: [1]", "twice"),
        (
            "map.json",
            b'{"physical_to_logical_map": [[0]], "physical_to_logical_map": [[1]]}',
            "'physical_to_logical_map' appears twice",
        ),
        ("map.yaml", b"num_slots: " + b"1" * 5000, "a number of more than 1000 digits"),
        ("map.yaml", b"!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("map.json", b"[" * 200_000, "nested"),
        ("map.yaml", b"[" * 200_000, "not"),
        ("map.yaml", b"- " * 100_000, "not"),
        ("map.json", b'{"physical_to_logical_map": [[' + b"9" * 5000 + b"]]}", "not valid JSON"),
        (
            "load.json",
            b'{"logical_count": [[1, 2]]}',
            "it holds the keys 'logical_count'; expected one of EPLB tensors, RTP-LLM, SGLang",
        ),
        ("list.json", b"[0, 1]", "it holds a list"),
        ("words.txt", b"hello", "it holds a str"),
    ],
)
def test_a_file_that_is_no_map_is_one_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    """Cut short, binary, empty, doubled, foreign: one line that names the file; nothing is executed."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message) as refused:
        check_map(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_huge_and_missing_files_are_refused(tmp_path: Path) -> None:
    """A sparse file of 65 MiB is not read; a missing one and a folder are named."""
    huge = tmp_path / "huge.json"
    with huge.open("wb") as out:
        out.truncate(65 << 20)
    for path, message in (
        (huge, "more than"),
        (tmp_path / "none.json", "cannot be read"),
        (tmp_path, "a directory"),
    ):
        with pytest.raises(BadInput, match=message):
            check_map(path)


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
def test_what_we_emit_passes_our_own_check(engine: str, tmp_path: Path) -> None:
    """Every emitted map is ok with its model and EP size, read from its file by content."""
    emission = find_engine(engine).emit(random_placement(TINY, 8, 16), question(TINY, machine(4, 4), 16), "m")
    for name in {"expert_location.json", "moe_load_balancer.yaml"} & set(emission.files):
        path = tmp_path / name
        path.write_text(emission.files[name])
        report = check_map(path, TINY, 8)
        assert (report.ok, report.facts["slots"], report.unchecked) == (True, 80, ())


def test_a_model_is_found_by_name_and_the_report_can_be_printed(tmp_path: Path) -> None:
    """`check_file` is what the command line calls: names in, a report with text and JSON out."""
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"physical_to_logical_map": [[*range(8)]] * 31}))
    report = check_file(path, "mixtral", 8)
    assert report.text().splitlines()[1].startswith("bad: 31 rows, and")
    assert report.text().splitlines()[-1] == "1 problem"
    assert json.loads(json.dumps(report.to_dict()))["ok"] is False


def test_a_file_that_claims_to_be_a_plan_is_read_as_one(tmp_path: Path) -> None:
    """A damaged plan gets the plan reader's own line."""
    path = tmp_path / "plan.json"
    path.write_text('{"schema": "moeplan/plan/1"}')
    with pytest.raises(BadInput, match="'model' is missing"):
        check_file(path)
