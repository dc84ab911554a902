"""Outputs of AMD's tools are told apart from NVIDIA's, and refused by name."""

import pytest

from planner.base import BadInput
from probes.importers import topo_m
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints

LINKS = (
    "================= ROCm System Management Interface =================\n"
    "=================== Link Type between two GPUs =====================\n"
    "       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI         0\n"
)
TEXTS = {
    "rocm-smi": LINKS,
    "rocm-smi without its head": LINKS.split("\n", 1)[1],
    "rocm-smi --json": '{"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI"}}',
    "amd-smi topology": (
        "ACCESS TABLE:\n             0000:0c:00.0 0000:15:00.0\n0000:0c:00.0 ENABLED      ENABLED\n"
        "LINK TYPE TABLE:\n             0000:0c:00.0 0000:15:00.0\n0000:0c:00.0 SELF         XGMI\n"
    ),
    "amd-smi --json": '[{"gpu": 0, "links": [{"gpu": 1, "link_type": "XGMI"}]}]',
    "amd-smi list": "GPU: 0\n    BDF: 0000:0c:00.0\n    UUID: 01ff74a1-0000-1000-8000-000000000000\n",
    "rocminfo": "ROCk module is loaded\n  Marketing Name:          AMD Instinct MI300X\n",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_refused_by_name(kind: str) -> None:
    """One line says whose tool it is and what to do, and no table of links is taken for `topo -m`."""
    content = TEXTS[kind].encode()
    assert not topo_m.recognise(content, "x")
    with pytest.raises(BadInput, match=rf"is {kind.partition(' ')[0]}'s output.*topology file"):
        read_facts(content, "x")


@pytest.mark.parametrize("gcn", ['gcn="gfx942"', 'gcn="908"', ""])
def test_rccls_xml_is_of_amd(gcn: str) -> None:
    """By the chip's name, with or without gfx, or by its links: whatever --gpu says there is no topology."""
    gpus = "".join(
        f'<pci busid="0000:1{at}:00.0" class="0x038000" link_speed="16 GT/s" link_width="16">'
        f'<gpu dev="{at}" sm="120" {gcn} rank="{at}" gdr="1">'
        f'<xgmi target="0000:1{1 - at}:00.0" count="1" tclass="0x038000"/></gpu></pci>'
        for at in (0, 1)
    )
    content = f'<system version="2"><cpu numaid="0">{gpus}</cpu></system>'.encode()
    found = assemble(read_facts(content, "x.xml"), Hints(gpu="H100-SXM"))
    assert found.topology is None
    assert any("is an AMD " in sentence for sentence in found.unknown)
