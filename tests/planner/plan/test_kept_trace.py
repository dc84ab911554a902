"""Rows of a trace beside a plan: those that were held out, in bytes that the plan names by their digest."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput
from planner.load import LoadProfile, read_load, split_windows
from planner.plan import Plan, kept_file, kept_of, plan_files, read_kept, read_plan, write_plan
from planner.plan.kept_trace import KeptTrace
from planner.planning import PlanRequest, answer
from tests.planner.traced import MIXTRAL, SEQUENCES, TOKENS, plan_of, trace_file


def kept_beside(plan_file: Path) -> tuple[KeptTrace, LoadProfile]:
    """What the plan says of its rows, and those that lie beside it."""
    saved = read_plan(plan_file)
    kept = kept_of(saved.value)
    assert kept is not None
    load = read_kept(kept, plan_file, saved.problem)
    assert load is not None
    return kept, load


def ids_of(load: LoadProfile | None) -> list[object]:
    assert load is not None
    assert load.trace is not None
    ids: list[object] = load.trace.experts_LTK.tolist()
    return ids


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(trace_file(tmp_path_factory.mktemp("trace")))


def test_held_out_rows_lie_beside_the_plan(plan: Plan, tmp_path: Path) -> None:
    """Whole where they are few; the plan has their digest, their number and what they are."""
    path = write_plan(plan, tmp_path / "plan.json")
    kept_path = tmp_path / "plan.trace.npz"
    assert plan_files(plan, path) == [path, kept_path]
    assert json.loads(path.read_text())["traffic"] == {
        "sha256": hashlib.sha256(kept_path.read_bytes()).hexdigest(),
        "tokens": SEQUENCES // 3 * TOKENS,
        "part": "held out",
    }
    with np.load(kept_path) as arrays:
        assert arrays["topk_ids"].dtype == np.int16
        assert arrays["topk_ids"].tolist() == ids_of(plan.held_out_load)


def test_equal_plans_are_equal_bytes_under_any_name(plan: Plan, tmp_path: Path) -> None:
    """No time stands in the archive, and no name in the plan."""
    first, second = (write_plan(plan, tmp_path / f"{name}.json") for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert kept_file(first).read_bytes() == kept_file(second).read_bytes()
    members = zipfile.ZipFile(io.BytesIO(kept_file(first).read_bytes())).infolist()
    assert {member.date_time for member in members} == {(1980, 1, 1, 0, 0, 0)}


def test_fitted_rows_are_kept_where_nothing_is_held_out(plan: Plan, tmp_path: Path) -> None:
    found = plan_of(trace_file(tmp_path), held_out=0)
    kept, _ = kept_beside(write_plan(found, tmp_path / "plan.json"))
    assert (kept.part, kept.tokens) == ("fitted", SEQUENCES * TOKENS)


def test_a_plan_of_counts_keeps_none(tmp_path: Path) -> None:
    found = answer(PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="greedy"))
    path = write_plan(found, tmp_path / "plan.json")
    assert "traffic" not in read_plan(path).value
    assert plan_files(found, path) == [path] == list(tmp_path.iterdir())


def test_what_is_read_back_is_a_load_of_the_same_rows(plan: Plan, tmp_path: Path) -> None:
    """With the trace and its counts, as the load file of that name has them too."""
    path = write_plan(plan, tmp_path / "plan.json")
    _, load = kept_beside(path)
    as_file = read_load([kept_file(path)], MIXTRAL)
    assert ids_of(load) == ids_of(plan.held_out_load) == ids_of(as_file)
    assert load.total_LE.tolist() == as_file.total_LE.tolist()


def test_layers_that_were_not_recorded_keep_the_plans_load(tmp_path: Path) -> None:
    found = plan_of(trace_file(tmp_path, layers=(3, 5)))
    kept, load = kept_beside(write_plan(found, tmp_path / "plan.json"))
    assert load.trace is not None
    assert np.flatnonzero(load.trace.recorded_L).tolist() == [3, 5]
    assert load.total_LE[4].tolist() == found.problem.load.total_LE[4].tolist()
    assert load.total_LE[3].sum() == kept.tokens * MIXTRAL.top_k
    assert load.unmeasured_layer_ids == tuple(sorted(set(MIXTRAL.placed_layer_ids) - {3, 5}))


def test_no_more_rows_are_kept_than_the_cost_model_looks_at(tmp_path: Path) -> None:
    found = plan_of(trace_file(tmp_path, tokens=1000), held_out=0)
    kept, load = kept_beside(write_plan(found, tmp_path / "plan.json"))
    assert load.trace is not None
    assert load.trace.experts_LTK.shape[1] == kept.tokens == 4095


def test_rows_that_are_gone_are_none(plan: Plan, tmp_path: Path) -> None:
    path = write_plan(plan, tmp_path / "plan.json")
    kept, _ = kept_beside(path)
    kept_file(path).unlink()
    assert read_kept(kept, path, plan.problem) is None


def test_other_rows_than_the_plans_are_refused(plan: Plan, tmp_path: Path) -> None:
    """One bit is enough."""
    path = write_plan(plan, tmp_path / "plan.json")
    content = kept_file(path).read_bytes()
    kept_file(path).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BadInput, match=r"plan\.trace\.npz: not the rows .* SHA-256"):
        kept_beside(path)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"layer_ids": [0], "topk_ids": np.full((1, 3, 2), 8)}, "not 3 tokens"),
        ({"layer_ids": [0], "topk_ids": np.zeros((1, 3, 2))}, "not 3 tokens"),
        ({"layer_ids": [0], "topk_ids": np.zeros((1, 4, 2), dtype=int)}, "not 3 tokens"),
        ({"layer_ids": [99], "topk_ids": np.zeros((1, 3, 2), dtype=int)}, "layers"),
        ({}, "not 3 tokens"),
    ],
)
def test_rows_of_another_model_are_refused(
    arrays: dict[str, Any], words: str, plan: Plan, tmp_path: Path
) -> None:
    """Also where their digest is the plan's, as in a plan that was put together by hand."""
    path = write_plan(plan, tmp_path / "plan.json")
    with kept_file(path).open("wb") as out:
        np.savez(out, **arrays)
    value = read_plan(path).value
    value["traffic"] |= {"tokens": 3, "sha256": hashlib.sha256(kept_file(path).read_bytes()).hexdigest()}
    kept = kept_of(value)
    assert kept is not None
    with pytest.raises(BadInput, match=words):
        read_kept(kept, path, plan.problem)


@pytest.mark.parametrize("change", [{"part": "all"}, {"tokens": "3"}, {"sha256": None}, {"file": "x"}])
def test_a_plan_that_says_something_else_of_its_rows_is_refused(
    change: dict[str, Any], plan: Plan, tmp_path: Path
) -> None:
    path = write_plan(plan, tmp_path / "plan.json")
    value = json.loads(path.read_text())
    value["traffic"] |= change
    path.write_text(json.dumps(value))
    with pytest.raises(BadInput, match=rf"traffic: .*{next(iter(change))}"):
        read_plan(path)


def test_the_held_out_part_can_be_taken_again(plan: Plan, tmp_path: Path) -> None:
    """From the share that the plan has, and the file it was made from."""
    share = read_plan(write_plan(plan, tmp_path / "plan.json")).value["provenance"]["held_out_share"]
    _, held_out = split_windows(read_load([trace_file(tmp_path)], MIXTRAL), share)
    assert ids_of(held_out) == ids_of(plan.held_out_load)
