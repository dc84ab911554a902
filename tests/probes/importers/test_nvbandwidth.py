"""nvbandwidth names GPUs; its rates are of one pair at a time and replace nothing."""

import json

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers.smi_texts import matrix

NAME = "NVIDIA H100 80GB HBM3"
TEST = "device_to_device_memcpy_read_ce"


def text(gpus: int = 4, host: str | None = None) -> str:
    head = "nvbandwidth Version: v0.6\nBuilt from Git version: v0.6\n\nCUDA Runtime Version: 12060\n\n"
    start = "Device" if host is None else f"Process 0 ({host}): device"
    devices = "".join(f"{start} {at}: {NAME} (00000000:{at + 1}b:00)\n" for at in range(gpus))
    columns = "".join(f"{at:10d}" for at in range(gpus))
    rows = "".join(
        f"{at:2d}"
        + "".join(f"{'N/A' if to == at else f'{390 + at + to}.12':>10}" for to in range(gpus))
        + "\n"
        for at in range(gpus)
    )
    run = f"\nRunning {TEST}.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n  {columns}\n{rows}"
    return f"{head}{devices}{run}\nSUM {TEST} 4700.00\n"


def as_json(gpus: int = 4) -> str:
    cells = [["N/A" if to == at else f"{390 + at + to}.12" for to in range(gpus)] for at in range(gpus)]
    test = {"name": TEST, "status": "Passed", "bandwidth_matrix": cells, "min": 391.12}
    listed = [f"{at}: {NAME} (00000000:{at + 1}B:00)" for at in range(gpus)]
    return json.dumps(
        {"nvbandwidth": {"Driver Version": "560.28", "GPU Device list": listed, "testcases": [test]}}
    )


def hosts(content: str) -> list[HostFacts]:
    return [fact for fact in read_facts(content.encode(), "nvb") if isinstance(fact, HostFacts)]


@pytest.mark.parametrize("content", [text(), as_json()], ids=["text", "json"])
def test_names_addresses_and_what_copies_reached(content: str) -> None:
    """Smallest and largest of the pairs, said to be no all-to-all; how the GPUs are joined is not told."""
    (host,) = [host for host in hosts(content) if host.kind == "nvbandwidth"]
    assert [(gpu.name, gpu.pci) for gpu in host.gpus] == [(NAME, f"0000:{at + 1}b:00.0") for at in range(4)]
    assert "391.1 to 395.1 GB/s a pair" in host.warnings[0]
    assert host.domains is None


def test_it_names_the_gpus_of_a_matrix() -> None:
    """Beside `topo -m` in the same paste."""
    found = assemble(read_facts((text() + matrix()).encode(), "x"), Hints(nic_bytes_per_s=50e9))
    assert found.topology is not None, found.unknown
    assert found.topology.nodes[0].gpus[0].name == "H100-SXM-80GB"


def test_hosts_of_a_multinode_run() -> None:
    """Each process names its host."""
    first, second = text(host="tray1"), text(host="tray2")
    lines = [line for line in second.splitlines() if line.startswith("Process")]
    assert [host.host for host in hosts(first + "\n".join(lines) + "\n")] == ["tray1", "tray2"]


@pytest.mark.parametrize(
    "content", ['{"nvbandwidth": []}', '{"nvbandwidth": {"testcases": [], "Device": 1}}', as_json()[:-9]]
)
def test_what_names_no_gpu_is_refused(content: str) -> None:
    """One line."""
    with pytest.raises(BadInput):
        hosts(content)
