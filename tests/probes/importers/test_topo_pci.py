"""`topo -mp` shows PCI paths alone, and a matrix without links of GPUs that have them is not normal."""

from probes.base.facts import HostFacts
from probes.importers import topo_m
from probes.machine.assemble import assemble
from probes.machine.hints import Hints

HINTS = Hints(gpu="H100-SXM", nic_bytes_per_s=50e9)
MATRIX = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNODE\tPIX\t0-31\t0\nGPU1\tNODE\t X \tPIX\t0-31\t0\nNIC0\tPIX\tPIX\t X \n\n"
)
LEGEND = "Legend:\n\n  X    = Self\n  SYS  = Connection\n  PIX  = Connection traversing one bridge\n"
LINKS = "  NV#  = Connection traversing a bonded set of # NVLinks\n"


def facts_of(text: str) -> HostFacts:
    (facts,) = topo_m.read(text.encode(), "topo.txt")
    return facts


def test_pci_paths_alone_say_nothing_of_nvlink() -> None:
    """The legend lacks NV#: how far NICs are is known, what NVLink joins is not, and no machine is made."""
    facts = facts_of(MATRIX + LEGEND)
    assert (facts.domains, facts.nvlink_kind, facts.gpus[0].nvlinks) == (None, None, None)
    assert facts.nic_paths == {(0, 0): "PIX", (1, 0): "PIX"}
    assert "topo -mp" in facts.unknown[0]
    assert assemble([facts], HINTS).topology is None


def test_a_legend_with_links_and_none_shown_is_a_fault() -> None:
    """0 of 18 is warned of as 4 of 18 is; cards that are sold without bridges are not."""
    facts = facts_of(MATRIX + LEGEND + LINKS)
    assert (facts.nvlink_kind, facts.gpus[0].nvlinks) == ("none", 0)
    found = assemble([facts], HINTS)
    assert found.topology is not None
    assert any("0 NVLinks are shown of the 18" in sentence for sentence in found.warnings)
    bare = assemble([facts], Hints(gpu="A100-PCIe-80GB", nic_bytes_per_s=50e9))
    assert not any("NVLinks are shown" in sentence for sentence in bare.warnings)
    assert not any("NVLinks are shown" in line for line in assemble([facts], Hints(gpu="L40S")).warnings)


def test_a_paste_without_its_legend_is_read_as_before() -> None:
    """Nothing says that it is another matrix; nor does a legend of before NV# was explained."""
    assert facts_of(MATRIX).nvlink_kind == "none"
    assert facts_of(MATRIX + LEGEND.replace("SYS", "SOC")).nvlink_kind == "none"
