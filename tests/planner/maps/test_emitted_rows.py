"""Rows of a trace go with the plan into the folder of an emission, and are listed there."""

from pathlib import Path

import pytest

from planner.base import BadInput
from planner.maps import check_file, emit_plan, write_emission
from planner.maps.manifest import MANIFEST, read_manifest
from planner.plan import kept_file, write_plan
from tests.planner.traced import plan_of, trace_file


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """A plan from a trace, under another name than an emission gives it."""
    return write_plan(plan_of(trace_file(tmp_path), context=512), tmp_path / "mine.json")


def emit(plan_file: Path) -> Path:
    folder = plan_file.parent / "out"
    emission = emit_plan(plan_file, "trtllm")
    write_emission(emission, plan_file, folder)
    return folder


def test_the_rows_lie_beside_the_copy_of_the_plan(plan_file: Path) -> None:
    """Under the copy's name, with the same bytes, and among the digests."""
    folder = emit(plan_file)
    copy = folder / "plan.trace.npz"
    assert copy.read_bytes() == kept_file(plan_file).read_bytes()
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.name_of(copy) == "plan.trace.npz"
    assert "plan.trace.npz" not in str(check_file(folder).violations)


def test_changed_rows_are_named(plan_file: Path) -> None:
    folder = emit(plan_file)
    with (folder / "plan.trace.npz").open("ab") as out:
        out.write(b"\n")
    found = [one.text for one in check_file(folder).violations if one.rule == "changed"]
    assert found == [f"plan.trace.npz was changed after the emission: {MANIFEST} has another SHA-256"]


def test_rows_that_are_gone_are_left_out(plan_file: Path) -> None:
    """A second emission has none, and does not leave those of the first."""
    emit(plan_file)
    kept_file(plan_file).unlink()
    assert not (emit(plan_file) / "plan.trace.npz").exists()


def test_other_rows_than_the_plans_are_not_emitted(plan_file: Path) -> None:
    """Nothing is written."""
    kept_file(plan_file).write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"mine\.trace\.npz: not the rows"):
        emit(plan_file)
    assert not (plan_file.parent / "out" / MANIFEST).exists()
