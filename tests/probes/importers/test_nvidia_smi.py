"""Small outputs of nvidia-smi: lists with MIG, NVLink status, CSV queries."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import nvidia_smi
from tests.places import SHARED

RECORDINGS = SHARED / "data/topology"


def listed(index: int) -> str:
    return f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index:08x}-1111-2222-3333-444444444444)\n"


def links(active: int, inactive: int = 0) -> str:
    return "".join(
        f"\t Link {n}: {'26.562 GB/s' if n < active else '<inactive>'}\n" for n in range(active + inactive)
    )


def read(text: str) -> HostFacts:
    assert nvidia_smi.recognise(text.encode(), "x")
    (host,) = nvidia_smi.read(text.encode(), "smi.txt")
    return host


class TestList:
    def test_names_and_uuids(self) -> None:
        """Identity, and nothing about links: neither their number nor who they join."""
        host = read(listed(0) + listed(1))
        assert [gpu.name for gpu in host.gpus] == ["NVIDIA H100 80GB HBM3"] * 2
        assert host.gpus[1].uuid == "GPU-00000001-1111-2222-3333-444444444444"
        assert (host.domains, host.gpus[0].nvlinks) == (None, None)

    def test_mig_is_a_fault_of_the_gpu(self) -> None:
        """Slices are counted and named, the GPU is one GPU."""
        host = read(
            listed(0)
            + "  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n  MIG 3g.40gb     Device  1: (UUID: MIG-2)\n"
        )
        assert len(host.gpus) == 1
        assert "split into 2 MIG instances (3g.40gb)" in host.gpus[0].faults[0]

    def test_gap_is_said(self) -> None:
        """GPUs 0 and 2 alone: how many there are is not known."""
        assert "GPUs 0, 2 only" in read(listed(0) + listed(2)).unknown[0]

    def test_damaged_line_is_said(self) -> None:
        """A GPU whose line cannot be read is not lost in silence."""
        host = read(listed(0) + "GPU 1: NVIDIA H100 80GB HBM3 (UUID: ???)\n")
        assert "line 2" in host.unknown[0]

    def test_two_hosts_in_one_file_are_refused(self) -> None:
        """The same index with another UUID cannot be one host."""
        with pytest.raises(BadInput, match="line 2: GPU 0"):
            read(listed(0) + listed(0).replace("1111", "5555"))


class TestNvlinkStatus:
    def test_active_links_and_rate(self) -> None:
        """The rate is the one printed: raw, not payload."""
        host = read(listed(0) + links(18) + listed(1) + links(18))
        assert [(gpu.nvlinks, gpu.nvlink_bytes_per_s) for gpu in host.gpus] == [(18, 26.562e9)] * 2

    def test_capabilities_and_counters_are_passed_over(self) -> None:
        """`nvlink -c` and `-e` list the same links again with other words."""
        more = "\t Link 0, P2P is supported: true\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 0\n"
        host = read(listed(0) + links(18) + listed(0) + more)
        assert (host.gpus[0].nvlinks, host.unknown) == (18, ())

    def test_inactive_links_are_a_fault(self) -> None:
        """Seventeen of eighteen."""
        gpu = read(listed(0) + links(17, 1)).gpus[0]
        assert gpu.nvlinks == 17
        assert "1 of its NVLinks are inactive" in gpu.faults[0]

    def test_all_inactive(self) -> None:
        """The driver's sentence in place of links: none, so each GPU is alone."""
        host = read(listed(0) + "NVML: Unable to retrieve NVLink information as all links are inActive\n")
        assert (host.gpus[0].nvlinks, host.nvlink_kind, host.domains) == (0, "none", ((0,),))

    def test_cut_list_of_links_is_not_counted(self) -> None:
        """GPU 1 shows fewer links than GPU 0 because the text ends."""
        host = read(listed(0) + links(18) + listed(1) + links(5))
        assert [gpu.nvlinks for gpu in host.gpus] == [18, None]
        assert "lists 5 of its 18" in host.unknown[0]


class TestQuery:
    def test_names_memory_and_fabric(self) -> None:
        """A ready fabric gives UUID and clique; the PCI address is written as the kernel does."""
        uuid = "12345678-1234-1234-1234-123456789abc"
        header = (
            "index, name, uuid, pci.bus_id, memory.total [MiB], "
            "fabric.state, fabric.status, fabric.clusterUuid, fabric.cliqueId\n"
        )
        host = read(
            header
            + f"0, NVIDIA GB200, GPU-1, 00000008:06:00.0, 189471 MiB, Completed, Success, {uuid}, 32766\n"
        )
        gpu = host.gpus[0]
        assert (gpu.pci, gpu.memory_bytes, gpu.fabric) == ("0008:06:00.0", 189471 << 20, f"{uuid}.32766")

    @pytest.mark.parametrize(
        ("state", "uuid", "said"),
        [
            ("Completed", "00000000-0000-0000-0000-000000000000", False),
            ("In Progress", "N/A", True),
            ("N/A", "N/A", False),
        ],
    )
    def test_fabric_that_joins_no_hosts(self, state: str, uuid: str, said: bool) -> None:
        """Zeros are a single host; a fabric that is not ready is said."""
        host = read(
            f"name, fabric.state, fabric.clusterUuid, fabric.cliqueId\nNVIDIA H200, {state}, {uuid}, 0\n"
        )
        assert host.gpus[0].fabric is None
        assert any("not ready" in sentence for sentence in host.unknown) == said

    def test_columns_in_any_order_and_without_a_header(self) -> None:
        """By their names, else by what the values look like; of a fabric of all GPUs the domain is known."""
        uuid = "12345678-1234-1234-1234-123456789abc"
        cells = ["0000000{0}:01:00.0", "NVIDIA GB200", "7", uuid]
        rows = "".join(", ".join(cells).format(gpu) + "\n" for gpu in range(2))
        host = read(f"pci.bus_id, name, fabric.cliqueId, fabric.clusterUuid\n{rows}")
        assert [(gpu.pci, gpu.fabric) for gpu in host.gpus] == [
            (f"000{n}:01:00.0", f"{uuid}.7") for n in (0, 1)
        ]
        assert (host.nvlink_kind, host.domains) == ("switch", ((0, 1),))
        bare = read(
            "".join(f"{n}, NVIDIA L4, GPU-0000000{n}-1111, 0000000{n}:01:00.0, 23034 MiB\n" for n in (0, 1))
        )
        assert [(gpu.name, gpu.pci, gpu.memory_bytes) for gpu in bare.gpus] == [
            ("NVIDIA L4", f"000{n}:01:00.0", 23034 << 20) for n in (0, 1)
        ]

    def test_a_list_and_a_table_in_one_text(self) -> None:
        """Both are read."""
        text = (
            listed(0) + links(18) + "index, name, memory.total [MiB]\n0, NVIDIA H100 80GB HBM3, 81559 MiB\n"
        )
        kinds = [fact.kind for fact in nvidia_smi.read(text.encode(), "x")]
        assert kinds == ["nvidia-smi-query", "nvidia-smi-nvlink"]

    def test_cut_row_is_refused(self) -> None:
        """Fewer values than columns."""
        with pytest.raises(BadInput, match="line 3: 1 values for 2 columns"):
            read("index, name\n0, NVIDIA H100\n1\n")


@given(st.integers(0, 1500), st.binary(max_size=12))
def test_only_bad_input_leaves(place: int, junk: bytes) -> None:
    """Any bytes at any place: refused or read."""
    text = (listed(0) + links(17, 1) + "index, name, fabric.clusterUuid\n0, NVIDIA H100, N/A\n").encode()
    for content in (text, text[: text.index(b"index")]):
        here = place % len(content)
        damaged = content[:here] + junk + content[here + len(junk) :]
        nvidia_smi.recognise(damaged, "x")
        with contextlib.suppress(BadInput):
            nvidia_smi.read(damaged, "x")


@pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason=f"recordings of other machines are not beside this checkout: {RECORDINGS}"
)
def test_recordings() -> None:
    """Eight H100 with 18 links of 26.562 GB/s; one A100 in seven slices. From the index of the recordings."""
    (h100,) = nvidia_smi.read((RECORDINGS / "nvlink_status_h100x8_bottlerocket.txt").read_bytes(), "h100")
    assert [(gpu.nvlinks, gpu.nvlink_bytes_per_s) for gpu in h100.gpus] == [(18, 26.562e9)] * 8
    (a100,) = nvidia_smi.read((RECORDINGS / "nvidia_smi_L_mig_a100.txt").read_bytes(), "a100")
    assert len(a100.gpus) == 1
    assert "7 MIG" in a100.gpus[0].faults[0]
