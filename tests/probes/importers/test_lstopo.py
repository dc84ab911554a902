"""hwloc's XML: GPUs, adapters and how far they are apart."""

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers.smi_texts import matrix

DOCTYPE = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'


def bridge(number: int, *inside: str, kind: str = "1-1") -> str:
    where = f'gp_index="{number}" bridge_type="{kind}" pci_busid="0000:{number:02x}:00.0"'
    return f'<object type="Bridge" {where}>{"".join(inside)}</object>'


def device(bus: int, kind: str, name: str, **infos: str) -> str:
    told = "".join(f'<info name="{key}" value="{value}"/>' for key, value in infos.items())
    where = f'gp_index="{900 + bus}" pci_busid="0000:{bus:02x}:00.0" pci_type="{kind} a1"'
    return f'<object type="PCIDev" {where}><object type="OSDev" name="{name}">{told}</object></object>'


def gpu(bus: int, vendor: str = "10de", model: str = "NVIDIA H100 80GB HBM3") -> str:
    uuid = f"GPU-{bus:08x}-0000-4000-8000-000000000000"
    return device(bus, f"0302 [{vendor}:2330] [10de:16c1]", "nvml0", GPUModel=model, NVIDIAUUID=uuid)


def nic(bus: int, name: str = "mlx5_0", state: str = "4") -> str:
    guid = f"0c42:a103:0012:34{bus:02x}"
    return device(bus, "0207 [15b3:1021] [15b3:0023]", name, NodeGUID=guid, Port1State=state)


def package(number: int, *inside: str) -> str:
    memory = f'<object type="NUMANode" os_index="{number}"/>'
    return f'<object type="Package" os_index="{number}">{memory}{"".join(inside)}</object>'


def machine(vendor: str = "10de") -> str:
    """Socket 0: a switch with GPU and NIC, a second root port with a NIC. Socket 1: a GPU."""
    switch = bridge(2, bridge(3, bridge(4, gpu(0x1B, vendor)), bridge(5, nic(0x1C))))
    first = bridge(1, switch, bridge(6, nic(0x2C, "mlx5_1", "1")), kind="0-1")
    second = bridge(7, bridge(8, gpu(0x9B, vendor)), kind="0-1")
    named = '<info name="HostName" value="node7"/>'
    inside = f'<object type="Machine">{named}{package(0, first)}{package(1, second)}</object>'
    return f'{DOCTYPE}<topology version="2.0">{inside}</topology>'


def read(text: str) -> HostFacts:
    (host,) = read_facts(text.encode(), "x.xml")
    assert isinstance(host, HostFacts)
    return host


def test_what_it_tells() -> None:
    """Names, UUIDs, NUMA nodes, ports and their state; one switch is PIX, a root complex PHB, sockets SYS."""
    host = read(machine())
    assert host.host == "node7"
    assert [(gpu.name, gpu.pci, gpu.numa) for gpu in host.gpus] == [
        ("NVIDIA H100 80GB HBM3", "0000:1b:00.0", 0),
        ("NVIDIA H100 80GB HBM3", "0000:9b:00.0", 1),
    ]
    assert host.gpus[1].uuid == "GPU-0000009b-0000-4000-8000-000000000000"
    assert [(nic.name, nic.up, nic.guid) for nic in host.nics] == [
        ("mlx5_0", True, "0c42a1030012341c"),
        ("mlx5_1", False, "0c42a1030012342c"),
    ]
    assert host.nic_paths == {(0, 0): "PIX", (0, 1): "PHB", (1, 0): "SYS", (1, 1): "SYS"}
    assert host.gpu_paths == {(0, 1): "SYS"}
    assert "nvidia-smi topo -m" in host.unknown[0]


def test_with_a_matrix_it_names_the_gpus() -> None:
    """The matrix knows NVLink, lstopo the models."""
    found = assemble(
        (*read_facts(machine().encode(), "x.xml"), *read_facts(matrix(2).encode(), "topo.txt")),
        Hints(nic_bytes_per_s=50e9),
    )
    assert found.gpus == 2
    assert found.nvlink_domains == ((0, 1),)


def test_amd_is_told_apart() -> None:
    """By its vendor id."""
    found = assemble([read(machine(vendor="1002"))], Hints(gpu="H100-SXM"))
    assert found.topology is None
    assert any("is an AMD" in line for line in found.unknown)


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (lambda text: text[:-30], "not whole XML"),
        (
            lambda text: text.replace("<topology", '<!DOCTYPE t [<!ENTITY e "x">]><topology', 1),
            "DTD of its own",
        ),
        (lambda text: text.replace("0302", "0300 x"), "shows no GPU"),
        (lambda text: text.replace("<object", "<object>" * 400 + "<object", 1), "not whole XML"),
    ],
)
def test_what_cannot_be_read(damage: object, part: str) -> None:
    """One line each; no entity is expanded."""
    with pytest.raises(BadInput, match=part):
        read(damage(machine()))  # type: ignore[operator]


def test_depth_is_bounded() -> None:
    """No real machine nests so."""
    deep = "<object>" * 400 + "</object>" * 400
    with pytest.raises(BadInput, match="no real machine"):
        read(f'{DOCTYPE}<topology version="2.0">{deep}</topology>')
