"""Probe records without the names that point at somebody's machines."""

import json
import re
from dataclasses import replace

from probes.base.facts import MeasureFacts
from probes.ranks.launch import Launch
from probes.record.anonymise import anonymise, anonymise_measured
from probes.record.file import ProbeRecord, record_from_dict, record_to_dict
from probes.record.merge import merge_records
from tests.probes.records import record, uuid


def full(name: str = "gpu-a.lab.example") -> ProbeRecord:
    """A record whose sentences name what must not be seen."""
    one = record(7, name, launch=Launch("srun", 0, 2, 0, run="4711"))
    warnings = (
        f"{name} is slow; gpu-a has 0x0c42a10300123007 and {uuid(7, 1)}",
        "gid fe80:0000:0000:0001 of gpu-a-2",
    )
    return replace(
        one,
        host=replace(
            one.host,
            warnings=warnings,
            gpus=(replace(one.host.gpus[0], faults=("on gpu-a",)), *one.host.gpus[1:]),
        ),
    )


def test_nothing_that_points_home_is_left() -> None:
    """Host name long and short, UUIDs, GUIDs, machine, job: gone from every value and every sentence."""
    text = json.dumps(record_to_dict(anonymise(full())))
    for secret in (
        "lab.example",
        '"gpu-a',
        " gpu-a ",
        "on gpu-a",
        "00000007",
        "3143b15b",
        "0c42a103",
        "fe80",
        f"{7:016x}",
        "4711",
    ):
        assert secret not in text
    assert "gpu-a-2" in text  # another word


def test_pseudonyms_are_the_same_everywhere() -> None:
    """In every file: a rack stays one rack, a value in a sentence stays that of its field.

    The result is a valid record.
    """
    one, other = anonymise(full()), anonymise(record(8, "gpu-b"))
    assert one == anonymise(full())
    assert {gpu.fabric for found in (one, other) for gpu in found.host.gpus} == {one.host.gpus[0].fabric}
    assert (one.host.gpus[1].uuid or "none") in one.host.warnings[0]
    assert (one.host.nics[0].guid or "none") in one.host.warnings[0]
    assert one.host.nics[0].guid == one.host.nics[0].card
    assert len(merge_records([("one", one), ("other", other)])) == 2
    assert record_from_dict(json.loads(json.dumps(record_to_dict(one))), "a") == one


def test_what_is_planned_with_stays() -> None:
    """Rates, paths, domains and product names are as they were; without these it would be no probe."""
    before, after = full().host, anonymise(full()).host
    for field in ("gpu_paths", "nic_paths", "domains", "nvlink_kind", "platform"):
        assert getattr(before, field) == getattr(after, field)
    assert [(gpu.name, gpu.pci, gpu.nvlinks) for gpu in before.gpus] == [
        (gpu.name, gpu.pci, gpu.nvlinks) for gpu in after.gpus
    ]


def test_a_key_of_ones_own_gives_other_pseudonyms() -> None:
    """So that a name cannot be confirmed by guessing."""
    assert anonymise(full()).host.host != anonymise(full(), "secret").host.host


def test_a_measurement_has_the_hosts_of_the_probe_files() -> None:
    """Under the same pseudonyms, also inside sentences, so that the two still belong together."""
    name = full().host.host or ""
    facts = MeasureFacts(
        f"torch-gloo on {name}",
        "torch-gloo",
        "alltoall",
        2,
        hosts=(name, "gpu-z"),
        warnings=(f"{name} and gpu-z are slow",),
    )
    hidden = anonymise_measured(facts)
    assert hidden.hosts[0] == anonymise(full()).host.host
    assert not re.search(rf"{name}|gpu-z", repr(hidden))
