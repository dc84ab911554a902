"""Whatever ends a writer, its folder or file is the old one or the new one, and `check` says which."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from planner.base import write_atomic, write_folder
from planner.base.swap import _remove_deserted
from planner.maps import check_file, emit_pair, emit_plan, write_emission, write_pair
from planner.plan import write_plan
from planner.planning import PlanRequest, answer
from tests.crashes import fresh, killed_before, refused_at, snapshot, steps_of

SMALL: dict[str, Any] = {"model": "mixtral", "topology": "hgx-h100:2x2", "redundant": 0, "method": "linear"}


# Steps between two that are tried; `make fuzz` tries every one.
EVERY = (
    dict.fromkeys(("emit", "pair", "file"), 1)
    if os.environ.get("MOEPLAN_FUZZ")
    else {"emit": 2, "pair": 5, "file": 1}
)


class Writer(NamedTuple):
    """`old` makes the folder as it was, `new` writes into it."""

    old: Callable[[Path], object]
    new: Callable[[Path], object]


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Writer]:
    home = tmp_path_factory.mktemp("plans")
    decode = write_plan(answer(PlanRequest(**SMALL)), home / "decode.json")
    other = write_plan(answer(PlanRequest(**{**SMALL, "method": "greedy"})), home / "other.json")
    prefill = write_plan(answer(PlanRequest(**SMALL, phase="prefill")), home / "prefill.json")
    emission, plugin = emit_plan(decode, "trtllm"), emit_plan(other, "vllm", plugin=True)
    pair = emit_pair((prefill, decode), "sglang", flags_only=True)
    halves = {role: (one, pair.plans[role]) for role, one in pair.emissions.items()}
    other_router = pair.router + "# another\n"
    return {
        "emit": Writer(
            lambda folder: write_emission(emission, decode, folder),
            lambda folder: write_emission(plugin, other, folder),
        ),
        "pair": Writer(
            lambda folder: write_pair(halves, pair.router, folder),
            lambda folder: write_pair(halves, other_router, folder),
        ),
        "file": Writer(
            lambda folder: write_folder(folder, {"plan.json": b"old" * 1000}),
            lambda folder: write_atomic(folder / "plan.json", b"new" * 1000),
        ),
    }


@pytest.mark.parametrize("way", ["emit", "pair", "file"])
def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new(
    way: str, writers: dict[str, Writer], tmp_path: Path
) -> None:
    """Every step of the system is a point to be killed at. A file of another hand is there in both."""
    writer, folder, saved = writers[way], tmp_path / "out", tmp_path / "saved"
    writer.old(folder)
    (folder / "mine.txt").write_text("mine")
    old = snapshot(folder)
    fresh(saved, folder)
    steps = steps_of(lambda: writer.new(folder))
    new = snapshot(folder)
    assert old != new
    assert new["mine.txt"] == b"mine"
    seen = set()
    for step in range(1, steps + 1, EVERY[way]):
        fresh(folder, saved)
        killed_before(step, lambda: writer.new(folder))
        found = snapshot(folder)
        assert found in (old, new), f"mixed at step {step} of {steps}"
        seen.add(found == new)
        if way == "emit" and (found == new or step % 8 == 0):
            notes = " ".join(check_file(folder).notes)
            left = any(lock.read_text() for lock in tmp_path.glob(".out.moeplan-*/unfinished.json"))
            which = "the new files, all of them" if found == new else "what was here before, all of it"
            assert (which in notes) == left
    assert False in seen
    assert True in seen or way == "file"
    writer.new(folder)
    assert snapshot(folder) == new
    assert not list(tmp_path.glob(".out.*"))


def test_where_no_kernel_exchanges_folders_the_old_one_is_never_lost(
    writers: dict[str, Writer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps take the place of one: between them is no folder, and the next writer brings it back."""
    monkeypatch.setattr("planner.base.swap._EXCHANGE", 1 << 20)  # EINVAL
    writer, folder, saved = writers["emit"], tmp_path / "out", tmp_path / "saved"
    writer.old(folder)
    old = snapshot(folder)
    fresh(saved, folder)
    steps = steps_of(lambda: writer.new(folder))
    new, absent = snapshot(folder), 0
    for step in range(steps - 12 - steps // 3, steps + 1):
        fresh(folder, saved)
        killed_before(step, lambda: writer.new(folder))
        if not folder.exists():
            absent += 1
            _remove_deserted(folder)
            assert snapshot(folder) == old
        assert snapshot(folder) in (old, new)
    assert absent == 1


@pytest.mark.parametrize("way", ["emit", "file"])
def test_a_writer_refused_at_any_step_changes_nothing_or_is_done(
    way: str, writers: dict[str, Writer], tmp_path: Path
) -> None:
    """A full disk at every step: one line, no traceback, nothing half-written, nothing left beside."""
    writer, folder, saved = writers[way], tmp_path / "out", tmp_path / "saved"
    writer.old(folder)
    old = snapshot(folder)
    fresh(saved, folder)
    steps = steps_of(lambda: writer.new(folder))
    new = snapshot(folder)
    for step in range(1, steps + 1, EVERY[way]):
        fresh(folder, saved)
        refused = refused_at(step, lambda: writer.new(folder))
        assert snapshot(folder) == (old if refused else new), f"step {step} of {steps}"
    writer.new(folder)
    assert not list(tmp_path.glob(".out.*"))
