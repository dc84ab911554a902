"""A probe file: written, read back strictly, imported."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput, flat
from probes.base.facts import PATHS, GpuFact, HostFacts, NicFact
from probes.importers.registry import read_facts
from probes.ranks.launch import Launch
from probes.record.file import (
    ProbeRecord,
    make_record,
    read_record,
    record_from_dict,
    record_name,
    record_to_dict,
    write_record,
)
from tests.probes.records import TAKEN, facts, record, uuid


def test_written_and_read_back(tmp_path: Path) -> None:
    """Nothing is lost, and the same record gives the same bytes."""
    launch = Launch("torchrun", 4, 8, 0, 4, 1, 2, "job 7")
    one = record(7, launch=launch)
    path = write_record(one, tmp_path)
    assert path.name == "moeplan-probe-node7-000000.json"
    assert read_record(path) == one
    content = path.read_bytes()
    assert write_record(one, tmp_path).read_bytes() == content
    assert json.loads(content)["schema"] == "moeplan/probe/1"


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    """A folder that is not there is one line."""
    with pytest.raises(BadInput, match="cannot be written"):
        write_record(record(7), tmp_path / "absent")


def test_the_name_is_safe() -> None:
    """Whatever a host is called, the file lies in the folder.

    Without a machine the name is the host's alone.
    """
    assert record_name(record(7, "../../etc/cron d", machine=None)) == "moeplan-probe-.._.._etc_cron_d.json"


def test_importing_a_probe_file(tmp_path: Path) -> None:
    """`moeplan import` knows it among other kinds."""
    path = write_record(record(7), tmp_path)
    assert read_facts(path.read_bytes(), "a.json") == (facts(7),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"schema": "moeplan/probe/2"},
            r"^a.json: not a probe file \(its schema is 'moeplan/probe/2'.*a newer moeplan wrote it",
        ),
        ({"taken": "yesterday"}, "^a.json: 'taken' is 'yesterday'; expected a time like"),
        ({"extra": 1}, "^a.json: unknown key 'extra'"),
        ({"host.host": " "}, "^a.json: a probe names no host"),
        ({"host.evidence": "measured"}, "^a.json: host: 'evidence' is 'measured'; expected read"),
        ({"host.gpus": []}, r"^a.json: host: 'gpus' is \[\]; expected a list of at least 1 and at most 128"),
        ({"host.nvlink_kind": "ring"}, "^a.json: host: 'nvlink_kind' is 'ring'"),
        ({"host.domains": [[0]]}, "^a.json: host: domains: must hold each of the 2 GPUs once"),
        ({"host.domains": [[0, "1"]]}, r"^a.json: host: domains\[0\]\[1\]: '1'; expected a whole number"),
        (
            {"host.gpu_paths": {"0-2": "NV18"}},
            "^a.json: host: gpu_paths: '0-2' is 'NV18'; expected GPUs and NICs that are there",
        ),
        ({"host.gpu_paths": {"0": "NV18"}}, "^a.json: host: gpu_paths: the key '0'; expected a pair"),
        ({"host.nic_paths": {"0-0": "NEAR"}}, "^a.json: host: nic_paths: '0-0' is 'NEAR'"),
        ({"host.gpus.1.index": 0}, r"^a.json: host: gpus: the indices are \[0, 0\]"),
        ({"host.gpus.1.uuid": uuid(7, 0)}, "^a.json: host: gpus: GPU-00000007.* is listed twice"),
        (
            {"host.gpus.1.nvlinks": True},
            r"^a.json: host: gpus\[1\]: 'nvlinks' is True; expected a whole number",
        ),
        (
            {"host.gpus.1.memory_bytes": 0},
            r"^a.json: host: gpus\[1\]: memory_bytes is 0; what is not known is left out",
        ),
        ({"host.gpus.1.memory_bytes": 10**30}, "'memory_bytes' is 1000.*; expected a whole number"),
        (
            {"host.nics.0.rate_bytes_per_s": float("nan")},
            r"^a.json: host: nics\[0\]: 'rate_bytes_per_s' is nan; expected a number",
        ),
        ({"host.nics.0.rate_bytes_per_s": -1.0}, r"^a.json: host: nics\[0\]: rate_bytes_per_s is -1.0"),
        ({"host.nics.0.up": None}, r"^a.json: host: nics\[0\]: 'up' is None; expected true or false"),
        ({"host.warnings": "none"}, "^a.json: host: 'warnings' is 'none'; expected a list"),
        (
            {"launch": {"launcher": "srun", "rank": 9, "world": 4, "local_rank": 0}},
            "^a.json: srun: rank is 9 of 4",
        ),
    ],
)
def test_what_a_probe_cannot_have_written(change: dict[str, Any], said: str) -> None:
    """Refused in one line that names file, place and value."""
    value = json.loads(json.dumps(record_to_dict(record(7))))
    for path, entry in change.items():
        *parents, last = path.split(".")
        target = value
        for parent in parents:
            target = target[int(parent)] if parent.isdigit() else target[parent]
        target[last] = entry
    with pytest.raises(BadInput, match=said) as fault:
        record_from_dict(value, "a.json")
    assert "\n" not in str(fault.value)


def test_a_file_cut_short(tmp_path: Path) -> None:
    """Every shorter file is refused; none is taken for a smaller machine."""
    text = write_record(record(7, gpus=1), tmp_path).read_text()
    for length in range(1, len(text.rstrip()), 7):
        (tmp_path / "cut.json").write_text(text[:length])
        with pytest.raises(BadInput):
            read_record(tmp_path / "cut.json")


texts = st.text(max_size=20).filter(lambda text: flat(text) == text)  # else written as one harmless line
labels = st.sampled_from((*PATHS, "NV1", "NV18"))
sentences = st.tuples(texts) | st.just(())
rates = st.none() | st.floats(1, 1e12)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
junk = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@st.composite
def gpu_facts(draw: st.DrawFn, index: int) -> GpuFact:
    name, numa = draw(st.none() | texts), draw(st.none() | st.integers(0, 9))
    return GpuFact(
        index, name, uuid(1, index), numa=numa, nvlink_bytes_per_s=draw(rates), faults=draw(sentences)
    )


@st.composite
def hosts(draw: st.DrawFn) -> HostFacts:
    gpus, nics = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    cards = tuple(
        NicFact(f"n{nic}", rate_bytes_per_s=draw(rates), up=draw(st.none() | st.booleans()))
        for nic in range(nics)
    )
    pairs = [(a, b) for a in range(gpus) for b in range(a + 1, gpus)]
    near = [(gpu, nic) for gpu in range(gpus) for nic in range(nics)]
    return HostFacts(
        "s",
        "probe",
        "read",
        host="h",
        gpus=tuple(draw(gpu_facts(gpu)) for gpu in range(gpus)),
        nics=cards,
        gpu_paths=draw(st.dictionaries(st.sampled_from(pairs), labels)) if pairs else {},
        nic_paths=draw(st.dictionaries(st.sampled_from(near), labels)) if near else {},
        nvlink_kind=draw(st.sampled_from((None, "none", "mesh"))),
        domains=draw(st.none() | st.just(tuple((gpu,) for gpu in range(gpus)))),
        unknown=draw(sentences),
    )


def test_what_a_driver_says_cannot_act(tmp_path: Path) -> None:
    """A fault's text with an escape and a line break is written so that the reader takes it."""
    one = record(7)
    told = replace(one, host=replace(one.host, unknown=("a\x1b[2J\nb",)))
    assert read_record(write_record(told, tmp_path)).host.unknown == ("a\\x1b[2J b",)


@given(hosts())
def test_any_host_comes_back_equal(host: HostFacts) -> None:
    """Through JSON text and back."""
    one = ProbeRecord(host, TAKEN)
    assert record_from_dict(json.loads(json.dumps(record_to_dict(one))), "a") == one


@given(junk, st.data())
def test_only_bad_input_leaves_the_reader(found: Any, data: st.DataObject) -> None:
    """Any value put in any place of a good record: a record or one line that begins with the file."""
    value = json.loads(json.dumps(record_to_dict(record(7, launch=Launch("srun", 0, 2, 0)))))
    target = value
    while True:
        key = data.draw(st.sampled_from(sorted(target) if isinstance(target, dict) else range(len(target))))
        if not isinstance(target[key], (dict, list)) or not target[key] or data.draw(st.booleans()):
            target[key] = found
            break
        target = target[key]
    said = "a: "
    try:
        record_from_dict(value, "a")
    except BadInput as fault:
        said = str(fault)
    assert said.startswith("a: ")


@given(st.binary(max_size=200))
def test_only_bad_input_leaves_the_importer(tail: bytes) -> None:
    """Bytes behind the mark of a probe file."""
    with pytest.raises(BadInput):
        read_facts(b'{"schema": "moeplan/probe/1", ' + tail, "a")


def test_more_processes_than_gpus() -> None:
    """A job that shows each process one GPU does not pass for a host of one."""
    launch = Launch("srun", 0, 16, 0, 8)
    assert (
        make_record(facts(7, gpus=1), TAKEN, launch)
        .host.warnings[-1]
        .startswith("srun started 8 processes on node7 and NVML shows 1 GPUs")
    )
    assert make_record(facts(7, gpus=8), TAKEN, launch).host == facts(7, gpus=8)
