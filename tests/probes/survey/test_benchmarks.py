"""Benchmarks that are held against a machine: several scopes in one file, and what is not used."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.topology import against_stated, read_topology
from probes.base.facts import MeasureFacts, Sample
from probes.measure.file import Measurement, write_measurement
from probes.survey.benchmarks import read_runs
from tests.probes.machine.logs import alltoall_log

TWO = read_topology("hgx-h100:2")
HOSTS = tuple(host for host in ("a", "b") for _ in range(8))


def facts(scope: str, groups: int, busbw: float, *, ranks: int = 16) -> MeasureFacts:
    """An all-to-all in which each rank sends `busbw` GB/s in all."""
    members = ranks // groups
    rows = [
        (size, 1e-5 + size * (members - 1) / members / busbw / 1e9) for size in (1 << 26, 1 << 28, 1 << 30)
    ]
    samples = tuple(Sample(size, taken, size / taken, 0.0, 0.0, in_place=False) for size, taken in rows)
    return MeasureFacts(
        "m", "torch-nccl", "alltoall", ranks, HOSTS, scope=scope, groups=groups, samples=samples
    )


def written(folder: Path, *told: MeasureFacts) -> Path:
    return write_measurement(Measurement("2026-01-15T09:30:00Z", told), folder / "measure.json")


def test_every_scope_is_held_against_its_links(tmp_path: Path) -> None:
    """Domains against NVLink, rails and all against NICs, each with its own part of what a rank sends."""
    told = (facts("domain", 2, 330), facts("rail", 8, 46), facts("all", 1, 40))
    runs, notes = read_runs([written(tmp_path, *told)], TWO)
    assert notes == ()
    seen = [against_stated(TWO, run) for run in runs]
    found = [(one.tier, round(one.measured.bytes_per_s / 1e9, 1)) for one in seen if one]
    assert found == [("nvlink", 330.0), ("nic", 46.0), ("nic", round(40 * 8 / 15, 1))]


def test_what_gpus_do_not_go_through_is_not_used(tmp_path: Path) -> None:
    """Beside one that can be, gloo and other collectives are notes; alone they are refused."""
    gloo = replace(facts("all", 1, 1), kind="torch-gloo")
    reduced = replace(facts("all", 1, 90), collective="allreduce")
    runs, notes = read_runs([written(tmp_path, facts("all", 1, 40), gloo, reduced)], TWO)
    assert len(runs) == 1
    assert [note.split(":")[0] for note in notes] == ["not used", "not used"]
    with pytest.raises(BadInput, match="CPU processes"):
        read_runs([written(tmp_path, gloo)], TWO)


def test_a_few_sizes_are_a_lower_bound(tmp_path: Path) -> None:
    """Two rows make no line: the largest counts whole."""
    text = alltoall_log(("a", "b"), 40e9)
    rows = [line for line in text.splitlines() if "float" in line]
    log = tmp_path / "alltoall.log"
    log.write_text("\n".join(line for line in text.splitlines() if line not in rows[:-1]))
    ((run,), _) = read_runs([log], TWO)
    assert run.start_seconds is None
    found = against_stated(TWO, run)
    assert found is not None
    assert 0.95 * 40e9 < found.measured.bytes_per_s < 40e9


def test_the_quickest_of_a_size_counts_for_small_messages(tmp_path: Path) -> None:
    """A size that was run twice."""
    told = facts("all", 1, 40)
    again = replace(told, samples=(*told.samples, replace(told.samples[0], seconds=9.0)))
    ((run,), _) = read_runs([written(tmp_path, again)], TWO)
    assert run.seconds_S[0] == told.samples[0].seconds
