"""Calibrations: checked once, kept by their machine, and refused by machines with other links."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput, read_json, write_json
from planner.topology import (
    Calibration,
    Reached,
    calibrated,
    read_calibration,
    read_topology,
    topology_from_dict,
)
from planner.topology.calibrated import write_calibration
from tests.planner.calibrations import calibration_of, phase_of, scale_of
from tests.planner.machines import two_by_two

MACHINE = two_by_two()
KNOWN = calibrated(MACHINE, calibration_of(MACHINE), "test")


def test_a_topology_keeps_its_calibration_when_it_is_narrowed_and_written() -> None:
    for narrowed in (KNOWN.select(1), KNOWN.without([3]), KNOWN.with_speeds({0: 0.5})):
        assert narrowed.calibration == KNOWN.calibration
    again = topology_from_dict(json.loads(json.dumps(KNOWN.to_dict())))
    assert again == KNOWN
    assert again.digest() == KNOWN.digest() != MACHINE.digest()


def test_a_topology_without_one_has_no_word_of_it() -> None:
    assert "calibration" not in MACHINE.to_dict()


def test_a_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = write_calibration(calibration_of(MACHINE), tmp_path / "c.json")
    assert read_calibration(path) == calibration_of(MACHINE)


def test_a_topology_file_may_hold_one_with_a_bare_date(tmp_path: Path) -> None:
    """A day in YAML is the text that it looks like."""
    text = json.dumps(KNOWN.to_dict()).replace('"2026-01-15"', "2026-01-15")
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    assert read_topology(str(path)).calibration == KNOWN.calibration


def test_other_links_refuse_it_and_say_which() -> None:
    said = (
        "dispatch of slot was calibrated over gloo on lab, with nvlink links of 400 GB/s, hgx-h100:2 has 450"
    )
    with pytest.raises(BadInput, match=said):
        calibrated(read_topology("hgx-h100:2"), calibration_of(MACHINE), "here")


def test_a_file_whose_rate_was_changed_by_hand_is_refused() -> None:
    value = KNOWN.to_dict()
    value["nodes"][0]["nics"][0]["rate"]["value"] = "45 GB/s"
    with pytest.raises(BadInput, match=r"lab.yaml: calibration: .* nic links of 50 GB/s, test has 45 GB/s"):
        topology_from_dict(value, "lab.yaml")


def test_a_machine_that_shares_no_link_with_it_refuses_it() -> None:
    scale = scale_of(MACHINE, rates=())
    with pytest.raises(BadInput, match="shares no kind of link"):
        calibrated(MACHINE, calibration_of(MACHINE, scale=scale), "here")


def test_backends_are_not_mixed() -> None:
    with pytest.raises(BadInput, match="taken over gloo, the other over nccl; they are not mixed"):
        calibrated(KNOWN, calibration_of(MACHINE, "nccl"), "here")


def test_a_newer_one_takes_the_place_of_the_same_phase_and_leaves_the_others() -> None:
    newer = Calibration("gloo", (phase_of(MACHINE, start_seconds=0.5), phase_of(MACHINE, transport="node")))
    joined = calibrated(KNOWN, newer, "here").calibration
    assert joined is not None
    found = {(one.transport, one.phase): one.start_seconds for one in joined.phases}
    assert found == {("slot", "combine"): 0.001, ("slot", "dispatch"): 0.5, ("node", "dispatch"): 0.001}


def test_what_is_beyond_its_scale_is_named() -> None:
    scale = scale_of(MACHINE)
    assert scale.beyond(4, 2, 2, 1e6) == ""
    assert scale.beyond(16, 4, 4, 1e6) == "4 GPUs to 16, 2 NVLink domains to 4, 2 nodes to 4"
    assert scale.beyond(4, 2, 2, 5e9) == "1 GB a GPU and step to 5 GB"
    assert scale.beyond(4, 2, 2, 10) == "1 kB a GPU and step to 10 B"


PHASE = ("phases", 0)
DAMAGE: list[tuple[tuple[Any, ...], Any, str]] = [
    (("schema",), "moeplan/calibration/2", "not a calibration .* expected 'moeplan/calibration/1'"),
    (("backend",), "", "'backend' is ''; expected a name like gloo"),
    (("backend",), 3, "'backend' is 3; expected a name like gloo"),
    (("phases",), [], "at least 1"),
    (("surplus",), 1, "unknown key 'surplus'"),
    ((*PHASE, "phase"), "send", "'phase' is 'send'; expected dispatch, combine or compute"),
    ((*PHASE, "phase"), "combine", "combine of slot appears twice"),
    (
        (*PHASE, "start_seconds"),
        -1e-6,
        r"phases\[0\]: 'start_seconds' is -1e-06; expected a number from 0 to 60",
    ),
    ((*PHASE, "start_seconds"), float("nan"), "'start_seconds' is nan"),
    ((*PHASE, "start_seconds"), True, "'start_seconds' is True; expected a number from 0 to 60"),
    ((*PHASE, "start_seconds"), 10**400, r"'start_seconds' is 1000+\.\.\."),
    ((*PHASE, "efficiency"), {}, "'efficiency' is {}"),
    ((*PHASE, "efficiency", "nic", "share"), 0, "nic: 'share' is 0; expected a number above 0, at most 1.5"),
    ((*PHASE, "efficiency", "nic", "share"), 40.0, "'share' is 40.0; expected a number above 0, at most 1.5"),
    (
        (*PHASE, "efficiency", "wire"),
        {"share": 0.5, "settings": 1},
        "efficiency: the key 'wire'; expected nvlink",
    ),
    ((*PHASE, "efficiency", "nic"), 0.5, "efficiency: nic: 0.5; expected a mapping"),
    ((*PHASE, "scale", "gpus"), 0, "scale: 'gpus' is 0"),
    ((*PHASE, "scale", "nodes"), 9, "4 GPUs cannot be in 2 NVLink domains and 9 nodes"),
    ((*PHASE, "scale", "tokens"), [64], r"scale: 'tokens' is \[64\]; expected a list of 2"),
    ((*PHASE, "scale", "tokens"), [64, 8.5], r"tokens\[1\]: 8.5; expected a whole number"),
    ((*PHASE, "scale", "bytes_sent"), [9, 1], "bytes_sent is 9.0 to 1.0"),
    ((*PHASE, "scale", "bytes_per_s", "nic"), [1, 10**400], "expected a number above 0"),
    ((*PHASE, "scale", "bytes_per_s", "leaf"), [1, 1], "the key 'leaf'"),
    ((*PHASE, "settings"), 0, "'settings' is 0"),
    ((*PHASE, "error"), -0.1, "'error' is -0.1"),
    ((*PHASE, "held_out_error"), float("inf"), "'held_out_error' is inf"),
    ((*PHASE, "machine"), "two\nlines", "'machine' is 'two"),
    ((*PHASE, "date"), "yesterday", "'date' is 'yesterday'; expected a day like 2026-01-15"),
    ((*PHASE, "date"), "20260115", "expected a day"),
]


@pytest.mark.parametrize(("keys", "value", "said"), DAMAGE)
def test_every_damaged_field_is_one_line(
    keys: tuple[Any, ...], value: Any, said: str, tmp_path: Path
) -> None:
    path = write_calibration(calibration_of(MACHINE), tmp_path / "c.json")
    data = deepcopy(read_json(path))
    at = data
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match=said) as refused:
        read_calibration(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    data = read_json(write_calibration(calibration_of(MACHINE), tmp_path / "c.json"))
    del data["phases"][1]["error"]
    with pytest.raises(BadInput, match=r"phases\[1\]: the key 'error' is missing"):
        read_calibration(write_json(tmp_path / "d.json", data))


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(" " * (2 << 20))
    with pytest.raises(BadInput, match="is more than the 1,048,576 we read"):
        read_calibration(path)


def test_a_tier_has_one_efficiency() -> None:
    with pytest.raises(BadInput, match="efficiency of 'nic'"):
        phase_of(MACHINE, reached=(Reached("nic", 0.5, 1), Reached("nic", 0.6, 1)))
