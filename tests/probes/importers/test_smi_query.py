"""`nvidia-smi -q`, text and XML: identity, memory, MIG, PCIe, and the fabric that spans hosts."""

from dataclasses import dataclass

import pytest

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers.registry import read_facts
from probes.machine.assemble import assemble
from probes.machine.hints import Hints
from tests.probes.importers.smi_texts import behind, matrix

ZERO = "00000000-0000-0000-0000-000000000000"
RACK = "5ea1ab1e-0000-4000-8000-00000000cafe"
KIND = "nvidia-smi-q"


@dataclass(frozen=True)
class Card:
    """What a block tells of its GPU."""

    name: str = "NVIDIA GB200"
    host: int = 0
    state: str = "Completed"
    uuid: str = RACK
    clique: str = "7"
    mig: str = "Disabled"
    lanes: str = "16x"

    def text(self, index: int) -> str:
        return f"""GPU 0000000{index}:01:00.0
    Product Name                          : {self.name}
    Product Brand                         : NVIDIA
    MIG Mode
        Current                           : {self.mig}
        Pending                           : {self.mig}
    MIG Device
        Index                             : 0
        FB Memory Usage
            Total                         : 9856 MiB
    GPU UUID                              : GPU-{self.host:08x}-0000-4000-8000-{index:012x}
    PCI
        Bus                               : 0x01
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : {self.lanes}
    FB Memory Usage
        Total                             : 188416 MiB
        Used                              : 4 MiB
    BAR1 Memory Usage
        Total                             : 262144 MiB
    Fabric
        State                             : {self.state}
        Status                            : {"Success" if self.state == "Completed" else "N/A"}
        CliqueId                          : {self.clique}
        ClusterUUID                       : {self.uuid}
        Health
            Bandwidth                     : N/A
    Processes                             : None
"""

    def xml(self, index: int) -> str:
        return (
            f'<gpu id="0000000{index}:01:00.0"><product_name>{self.name}</product_name>'
            f"<mig_mode><current_mig>{self.mig}</current_mig></mig_mode>"
            f"<uuid>GPU-{self.host:08x}-0000-4000-8000-{index:012x}</uuid>"
            "<pci><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen></pcie_gen><link_widths>"
            f"<max_link_width>16x</max_link_width><current_link_width>{self.lanes}</current_link_width>"
            "</link_widths></pci_gpu_link_info></pci>"
            "<fb_memory_usage><total>188416 MiB</total></fb_memory_usage>"
            f"<fabric><state>{self.state}</state><status>Success</status><cliqueId>{self.clique}</cliqueId>"
            f"<clusterUuid>{self.uuid}</clusterUuid></fabric></gpu>"
        )


def log(card: Card, gpus: int = 4) -> str:
    head = (
        "\n==============NVSMI LOG==============\n\nDriver Version                            : 570.86.15\n"
    )
    return f"{head}\nAttached GPUs                             : {gpus}\n" + "".join(
        map(card.text, range(gpus))
    )


def xml(card: Card, gpus: int = 4) -> str:
    doctype = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
    return (
        f"{doctype}<nvidia_smi_log><attached_gpus>{gpus}</attached_gpus>"
        + "".join(map(card.xml, range(gpus)))
        + "</nvidia_smi_log>"
    )


def read(text: str) -> HostFacts:
    (host,) = read_facts(text.encode(), "smi.txt")
    assert isinstance(host, HostFacts)
    return host


@pytest.mark.parametrize("render", [log, xml])
def test_what_it_tells(render: object) -> None:
    """Name, UUID, PCI address, the GPU's own memory and not a slice's, PCIe at best, fabric and clique."""
    host = read(render(Card()))  # type: ignore[operator]
    gpu = host.gpus[1]
    assert (host.kind, len(host.gpus)) == (KIND, 4)
    assert (gpu.name, gpu.pci, gpu.memory_bytes) == ("NVIDIA GB200", "0001:01:00.0", 188416 << 20)
    assert gpu.uuid == "GPU-00000000-0000-4000-8000-000000000001"
    assert (gpu.fabric, gpu.pcie_bytes_per_s, gpu.faults) == (f"{RACK}.7", 64e9, ())
    assert (host.nvlink_kind, host.domains, host.unknown) == ("switch", ((0, 1, 2, 3),), ())


def test_trays_of_one_rack() -> None:
    """Behind pdsh: the same UUID and clique on four hosts is one domain of 16 GPUs, another clique is not."""
    text = "".join(behind(f"tray{host}", log(Card(host=host))) for host in range(4))
    hints = Hints(nic_bytes_per_s=50e9)
    found = assemble(read_facts(text.encode(), "smi.txt"), hints)
    assert found.nvlink_domains == (tuple(range(16)),)
    apart = text.replace(": 7\n", ": 8\n", 8)
    assert [len(group) for group in assemble(read_facts(apart.encode(), "x"), hints).nvlink_domains] == [8, 8]


def test_one_tray_asks_how_many_share_its_fabric() -> None:
    """The fabric of one host says nothing of hosts that --nodes makes after it."""
    facts = read_facts((log(Card()) + matrix(4)).encode(), "smi.txt")
    asked = assemble(facts, Hints(nic_bytes_per_s=50e9, nodes=36))
    assert asked.topology is None
    assert any("--nvlink-domain-nodes" in line for line in asked.unknown)
    told = assemble(facts, Hints(nic_bytes_per_s=50e9, nodes=36, nvlink_domain_nodes=18)).topology
    assert told is not None
    assert told.domain_count == 2


@pytest.mark.parametrize("state", ["In Progress", "Not Started"])
def test_a_fabric_that_is_not_ready_makes_no_machine(state: str) -> None:
    """Alone, a tray would pass for a machine of four GPUs."""
    found = assemble([read(log(Card(state=state, uuid="N/A", clique="N/A")))], Hints(nic_bytes_per_s=50e9))
    assert found.topology is None
    assert any("fabric not ready" in line for line in (*found.unknown, *found.warnings))


def test_a_single_host_has_no_fabric_of_its_own() -> None:
    """H100 answers with zeros or N/A; what joins its GPUs is then not told."""
    for card in (Card("NVIDIA H100 80GB HBM3", uuid=ZERO, clique="0"), Card("NVIDIA A40", state="N/A")):
        host = read(log(card))
        assert (host.domains, host.gpus[0].fabric, host.unknown) == (None, None, ())


def test_faults() -> None:
    """MIG and a link on fewer lanes."""
    assert "MIG is on" in read(log(Card(mig="Enabled"))).gpus[0].faults[0]
    narrow = read(log(Card(lanes="8x"))).gpus[0]
    assert (narrow.faults, narrow.pcie_bytes_per_s) == (("its PCIe link runs on 8 of 16 lanes",), 32e9)


def test_cut_anywhere_it_says_so() -> None:
    """As many GPUs as are attached, or a sentence, or a refusal; nothing of the XML."""
    whole = log(Card())
    for cut in range(1, len(whole), 53):
        try:
            host = read(whole[:cut])
        except BadInput:
            continue
        assert len(host.gpus) == 4 or host.unknown, cut
    with pytest.raises(BadInput, match="not whole XML"):
        read(xml(Card())[:-20])


def test_a_dtd_of_its_own_is_refused() -> None:
    """Only the line that nvidia-smi writes is passed over."""
    with pytest.raises(BadInput, match="DTD"):
        read(xml(Card()).replace("<nvidia_smi_log>", '<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log>', 1))
