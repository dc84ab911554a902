"""A measurement or a calibration put onto a preset or a topology file: what changes, and what is refused."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from planner.base import BadInput
from planner.topology import read_topology
from planner.topology.calibrated import write_calibration
from probes.base.facts import MeasureFacts, Sample
from probes.machine.hints import NO_HINTS, Hints
from probes.measure.file import Measurement, write_measurement
from probes.survey.from_files import import_files
from tests.planner.calibrations import calibration_of
from tests.probes.importers.nccl_runs import devices, output, row

PRESET = Path("preset:hgx-h100:2")


def log(folder: Path, ranks: int = 16, rate: float = 40.0) -> Path:
    """alltoall_perf over hosts of 8, `rate` GB/s of its own size."""
    path = folder / "alltoall.log"
    rows = [row(8 << 20 << size, rate, ranks=ranks) for size in range(5)]
    path.write_text(output(rows, devices(ranks, 8)))
    return path


def topology_file(folder: Path, text: str = "hgx-h100:2") -> Path:
    path = folder / "cluster.json"
    path.write_text(json.dumps(read_topology(text).to_dict()))
    return path


def refused(paths: Sequence[Path], hints: Hints = NO_HINTS) -> str:
    with pytest.raises(BadInput) as error:
        import_files(paths, hints)
    return str(error.value)


def nic_rates(found: object) -> set[tuple[float, str]]:
    resources = found.topology.resources  # type: ignore[attr-defined]
    return {
        (round(one.rate.bytes_per_s / 1e9, 3), one.rate.evidence.kind)
        for one in resources
        if one.tier == "nic"
    }


def test_a_log_on_a_preset_measures_the_links_it_waited_for(tmp_path: Path) -> None:
    """Half of a GPU's bytes go to the other node: 20 of 40 GB/s. NVLink keeps the preset's rate."""
    found = import_files([PRESET, log(tmp_path)], Hints())
    assert nic_rates(found) == {(20.0, "measured")}
    kinds = {one.rate.evidence.kind for one in found.topology.resources if one.tier == "nvlink"}
    assert kinds == {"preset"}
    assert found.machine.kinds == ("preset:hgx-h100:2", "nccl-tests")
    assert not found.machine.warnings


def test_a_topology_file_may_stand_for_the_preset_and_in_any_place(tmp_path: Path) -> None:
    paths = [log(tmp_path), topology_file(tmp_path)]
    assert import_files(paths, Hints()).topology == import_files([PRESET, paths[0]], Hints()).topology


def test_nodes_of_a_file_may_be_taken_with_a_colon(tmp_path: Path) -> None:
    counted = Path(f"{topology_file(tmp_path, 'hgx-h100:4')}:2")
    assert nic_rates(import_files([counted, log(tmp_path)], Hints())) == {(20.0, "measured")}


def test_ranks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    said = refused([Path("preset:hgx-h100:1"), log(tmp_path)])
    assert "ran over 16 ranks, the topology hgx-h100:1 has 8 GPUs" in said
    assert "do not fit the topology" in refused([Path("preset:hgx-h100:4x4"), log(tmp_path)])


def test_a_log_faster_than_the_preset_is_of_another_machine(tmp_path: Path) -> None:
    assert "this topology is not the machine that was measured" in refused([PRESET, log(tmp_path, rate=120)])


def test_gpus_that_were_not_measured_are_named(tmp_path: Path) -> None:
    found = import_files([Path("preset:hgx-h100:3"), log(tmp_path)], Hints())
    assert found.machine.warnings == (
        "16 of 24 GPUs were measured: the links of the others keep what is stated",
    )


def test_a_preset_alone_has_nothing_put_on_it() -> None:
    assert refused([PRESET]) == (
        "preset:hgx-h100:2: nothing is to be put on it; give a log of alltoall_perf, "
        "what `probe --measure` wrote, or a calibration"
    )


def test_two_machines_are_one_too_many(tmp_path: Path) -> None:
    assert "each describe a machine" in refused([PRESET, topology_file(tmp_path), log(tmp_path)])
    paste = tmp_path / "topo.txt"
    paste.write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n")
    assert "describes a machine (topo-m), and so does preset:hgx-h100:2" in refused([PRESET, paste])


def test_hints_of_what_the_preset_says_are_refused(tmp_path: Path) -> None:
    said = refused([PRESET, log(tmp_path)], Hints(nodes=2, gpu="H100-SXM"))
    assert said == "--gpu: preset:hgx-h100:2 says it of the machine; leave --gpu, --nodes out"


def test_rates_between_cpu_processes_need_a_word(tmp_path: Path) -> None:
    samples = tuple(
        Sample(size, size / 30e6, 30e6, 20e6, 20e6, in_place=False) for size in (1 << 20, 1 << 21, 1 << 22)
    )
    hosts = ("host0",) * 8 + ("host1",) * 8
    facts = MeasureFacts("run", "torch-gloo", "alltoall", 16, hosts, samples=samples)
    path = write_measurement(Measurement("2026-01-15T09:30:00Z", (facts,)), tmp_path / "m.json")
    assert "between CPU processes" in refused([PRESET, path])
    assert nic_rates(import_files([PRESET, path], Hints(cpu_rates=True))) == {(0.015, "measured")}


def test_a_calibration_goes_into_the_topology_and_its_file(tmp_path: Path) -> None:
    base = topology_file(tmp_path)
    calibration = calibration_of(read_topology("hgx-h100:2"), "nccl")
    path = write_calibration(calibration, tmp_path / "c.json")
    found = import_files([base, path], Hints())
    assert found.topology.calibration == calibration
    assert found.machine.kinds[-1] == "calibration"
    written = tmp_path / "x.json"
    written.write_text(json.dumps(found.topology.to_dict()))
    assert read_topology(str(written)) == found.topology


def test_links_measured_after_a_calibration_make_it_another_machines(tmp_path: Path) -> None:
    calibration = calibration_of(read_topology("hgx-h100:2"), "nccl")
    path = write_calibration(calibration, tmp_path / "c.json")
    assert "nic links of 50 GB/s" in refused([PRESET, log(tmp_path), path])
    held = tmp_path / "held.json"
    held.write_text(json.dumps(import_files([PRESET, path], Hints()).topology.to_dict()))
    assert "its calibration: dispatch of slot was calibrated" in refused([held, log(tmp_path)])


def test_a_calibration_without_a_machine_says_what_is_missing(tmp_path: Path) -> None:
    path = write_calibration(calibration_of(read_topology("hgx-h100:2"), "nccl"), tmp_path / "c.json")
    assert "no topology can be made of this" in refused([path])
