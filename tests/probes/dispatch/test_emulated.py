"""`moeplan validate --emulate` as a user runs it; alone, for a busy machine makes shaped links slow."""

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planner.base import Rate
from planner.cli import main
from planner.topology import Topology
from probes.emulation.flat import flat_cluster
from probes.emulation.namespaces import unavailable
from tests.probes.emulation.shapes import SAID

NO_CLUSTER = unavailable()
pytestmark = [
    pytest.mark.skipif(NO_CLUSTER is not None, reason=f"no emulated cluster here: {NO_CLUSTER}"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.alone,
]

FLAT = flat_cluster(2, 2, 4e7, 1e7)  # two nodes of two GPUs, NVLink of 40 MB/s, a NIC of 10 MB/s each
GPU = replace(FLAT.nodes[0].gpus[0], memory_bytes=1.6e11)  # on which the model fits
STATED = replace(FLAT, nodes=tuple(replace(node, gpus=(GPU, GPU)) for node in FLAT.nodes))
LIGHT = ("--layers", "1", "--repeats", "3", "--timeout", "100")


def run(*argv: str | Path) -> Any:
    return CliRunner().invoke(main, [str(word) for word in argv])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a load with a hot expert, so that there is a gain to promise."""
    folder = tmp_path_factory.mktemp("emulated")
    counts = [f"{layer},{expert},{900 if expert == 0 else 100}" for layer in range(32) for expert in range(8)]
    load = folder / "load.csv"
    load.write_text("\n".join(["layer_id,expert_id,count", *counts]))
    machine = written(folder / "lab.json", STATED)
    made = run(
        "solve", "--model", "mixtral", "--topology", machine, "--load", load, "--redundant", "4",
        "--transport", "rank", "-o", folder / "plan.json",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    return folder / "plan.json"


def written(path: Path, machine: Topology) -> Path:
    path.write_text(json.dumps(machine.to_dict()))
    return path


def test_a_promise_is_kept_on_the_machine_it_was_made_for(plan: Path) -> None:
    """Every check holds, exchanges are judged, and the gain on the default is confirmed."""
    result = run("validate", plan, "--emulate", *LIGHT, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert all(check["ok"] for check in said["checks"])
    assert {(one["side"], one["phase"], one["holds"]) for one in said["verdict"]["phases"]} == {
        (side, phase, True) for side in ("plan", "default") for phase in ("dispatch", "combine")
    }
    assert [gain["state"] for gain in said["verdict"]["gains"]] == ["kept"] * 3
    assert all(gain["promised"] < 0.8 for gain in said["verdict"]["gains"])  # so there was one to keep


def test_a_nic_at_a_quarter_of_its_rate_is_named(plan: Path, tmp_path: Path) -> None:
    """The machine that runs is not the one that was planned for: exit 1, and the likely cause."""
    nic = replace(STATED.nodes[1].nics[0], rate=Rate(2.5e6, SAID))
    slow = replace(STATED.nodes[1], nics=(nic, *STATED.nodes[1].nics[1:]))
    machine = written(tmp_path / "slow.json", replace(STATED, nodes=(STATED.nodes[0], slow)))
    result = run("validate", plan, "--emulate", machine, *LIGHT)
    assert result.exit_code == 1, result.output
    assert re.search(r"The prediction fails: .* took [34]\.\d+ times .*node1/nic0 at 2\d % of", result.stdout)
    assert "no single cause" not in result.stdout
