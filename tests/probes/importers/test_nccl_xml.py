"""NCCL's topology XML: dumps, cloud skeletons, several hosts in one file, and files that must be refused."""

import contextlib
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.base import BadInput
from probes.base.facts import HostFacts
from probes.importers import nccl_xml
from tests.places import SHARED

FOLDER = SHARED / "data/topology"


def gpu(bus: str, dev: int, links: str = "", speed: str = "32.0 GT/s PCIe") -> str:
    return f'<pci busid="{bus}" class="0x030200" link_speed="{speed}" link_width="16"><gpu dev="{dev}" sm="90" rank="{dev}" gdr="1">{links}</gpu></pci>'


def link(target: str, count: int, far: str = "0x068000") -> str:
    return f'<nvlink target="{target}" count="{count}" tclass="{far}"/>'


def net(name: str, bus: str = "", speed: int = 400000, guid: str = "0x506b4b0300cc1234", gdr: int = 1) -> str:
    inner = f'<nic><net name="{name}" dev="0" speed="{speed}" port="1" guid="{guid}" maxconn="1024" gdr="{gdr}"/></nic>'
    return (
        f'<pci busid="{bus}" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">{inner}</pci>'
        if bus
        else inner
    )


def bridge(bus: str, inside: str, vendor: str = "0x15b3") -> str:
    return f'<pci busid="{bus}" class="0x060400" vendor="{vendor}" device="0xc030" link_speed="32.0 GT/s PCIe" link_width="16">{inside}</pci>'


def system(*cpus: str, host: str = "") -> str:
    marks = f'host_hash="{host}" ' if host else ""
    return (
        '<system version="1">'
        + "".join(f'<cpu {marks}numaid="{n}" arch="x86_64">{inside}</cpu>' for n, inside in enumerate(cpus))
        + "</system>"
    )


def read(text: str) -> HostFacts:
    (host,) = nccl_xml.read(text.encode(), "dump.xml")
    return host


SWITCHED = link("0000:1a:00.0", 9) + link("0000:1b:00.0", 9)


class TestDump:
    def test_links_to_switches_make_one_domain(self) -> None:
        """Links to several switches add up; PCIe is raw; the NUMA node is the CPU's."""
        host = read(system(gpu("0000:0f:00.0", 0, SWITCHED), gpu("0000:2d:00.0", 1, SWITCHED)))
        assert (host.nvlink_kind, host.domains, dict(host.gpu_paths)) == (
            "switch",
            ((0, 1),),
            {(0, 1): "NV18"},
        )
        assert [fact.pcie_bytes_per_s for fact in host.gpus] == [64e9, 64e9]
        assert [fact.numa for fact in host.gpus] == [0, 1]

    def test_direct_links_make_a_bridge(self) -> None:
        """The class of the far end tells a GPU from a switch."""
        a, b, c = "0001:00:00.0", "0002:00:00.0", "0003:00:00.0"
        host = read(system(gpu(a, 0, link(b, 4, "0x030200")) + gpu(b, 1, link(a, 4, "0x030200")) + gpu(c, 2)))
        assert (host.nvlink_kind, host.domains) == ("bridge", ((0, 1), (2,)))
        assert host.gpu_paths[0, 1] == "NV4"

    def test_links_of_a_virtual_machine_that_lead_to_themselves(self) -> None:
        """Two GPUs can only be each other's partner; of four nobody can tell, so the domains are not known."""
        own = [gpu(f"000{n}:00:00.0", n, link(f"000{n}:00:00.0", 12, "0x030200")) for n in range(4)]
        assert read(system(*own[:2])).gpu_paths == {(0, 1): "NV12"}
        four = read(system(*own))
        assert four.domains is None
        assert [fact.nvlinks for fact in four.gpus] == [12] * 4
        assert "lead to no GPU of the file" in four.unknown[0]

    def test_distances_to_nics(self) -> None:
        """One switch is PIX, two are PXB, the CPU is PHB, the other CPU SYS; the two levels of a Broadcom switch are one."""
        near = bridge("0000:01:00.0", gpu("0000:02:00.0", 0) + net("near", "0000:03:00.0"))
        far = bridge(
            "0000:01:00.0",
            bridge("0000:04:00.0", net("far", "0000:05:00.0", guid="0x1")) + gpu("0000:02:00.0", 0),
        )
        two_level = bridge(
            "0000:01:00.0",
            bridge("0000:04:00.0", net("far", "0000:05:00.0"), "0x1000")
            + bridge("0000:06:00.0", gpu("0000:02:00.0", 0), "0x1000"),
            "0x1000",
        )
        beside = gpu("0000:02:00.0", 0) + net("beside", "0000:05:00.0")
        mixed = two_level.replace('vendor="0x1000"', 'vendor="0x15b3"', 1)
        for text, path in ((near, "PIX"), (far, "PXB"), (two_level, "PIX"), (mixed, "PXB"), (beside, "PHB")):
            assert dict(read(system(text)).nic_paths) == {(0, 0): path}
        assert dict(read(system(gpu("0000:02:00.0", 0), net("other", "0000:05:00.0"))).nic_paths) == {
            (0, 0): "SYS"
        }

    def test_device_numbers_order_the_gpus(self) -> None:
        """CPUs come in any order; a gap in the numbers means that the job did not use every GPU."""
        host = read(system(gpu("0000:81:00.0", 3), gpu("0000:01:00.0", 0)))
        assert [fact.pci for fact in host.gpus] == ["0000:01:00.0", "0000:81:00.0"]
        assert "device numbers 0, 3" in host.warnings[0]

    def test_virtual_interfaces_are_listed_once_and_not_for_traffic(self) -> None:
        """NCCL repeats them under every CPU: then they have no place and no distance."""
        virtual = net("cali1c7388", speed=10000, gdr=0, guid="0x4")
        host = read(system(gpu("0000:01:00.0", 0) + virtual, virtual))
        assert [(nic.name, nic.compute) for nic in host.nics] == [("cali1c7388", False)]
        assert not host.nic_paths

    def test_rate_is_megabits(self) -> None:
        """400000 is 50 GB/s; zero is not known, never 10 Gb/s."""
        host = read(
            system(gpu("0000:01:00.0", 0) + net("a", "0000:02:00.0") + net("b", "0000:03:00.0", speed=0))
        )
        assert [nic.rate_bytes_per_s for nic in host.nics] == [50e9, None]

    def test_open_pcie_link_is_not_known(self) -> None:
        """Virtual machines write an empty speed and width 0."""
        host = read(system(gpu("0000:01:00.0", 0, speed="")))
        assert host.gpus[0].pcie_bytes_per_s is None

    def test_host_hash_tells_hosts_apart(self) -> None:
        """A dump of an NVLink rack holds several hosts; a single one stays without a name, so that other files can join it."""
        one, other = (
            system(gpu("0008:01:00.0", 0, SWITCHED), host=mark)[
                len('<system version="1">') : -len("</system>")
            ]
            for mark in ("0xa", "0xb")
        )
        hosts = nccl_xml.read(f"<system>{one}{other}</system>".encode(), "rack.xml")
        assert [host.host for host in hosts] == ["0xa", "0xb"]
        assert read(f"<system>{one}</system>").host is None


class TestSkeleton:
    def test_counts_by_class_and_says_what_is_missing(self) -> None:
        """No <gpu>, no <net>: GPUs and NICs by PCI class, no rates, no NVLink, in the order of their addresses."""
        switch = '<pci busid="0000:0b:00.0" class="0x030200"/><pci busid="0000:0c:00.0" class="0x020000"/><pci busid="0000:0a:00.0" class="0x030200"/>'
        host = read(system(bridge("ffff:ff:01.0", switch)))
        assert [fact.pci for fact in host.gpus] == ["0000:0a:00.0", "0000:0b:00.0"]
        assert [(nic.name, nic.rate_bytes_per_s) for nic in host.nics] == [("0000:0c:00.0", None)]
        assert host.domains is None
        assert "skeleton" in host.unknown[0]


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("<graphs version='1'></graphs>", "graph dump"),
            ("<topology></topology>", "<topology>"),
            (system("")[:-9], "cut short"),
            (system(""), "no GPU"),
            ("<!DOCTYPE s [<!ENTITY a 'aaaa'>]>" + system(gpu("0000:01:00.0", 0)), "DTD"),
            (system(gpu("0000:01:00.0", 0) + gpu("0000:01:00.0", 1)), "twice"),
            (system(gpu("0000:01:00.0", 0, link("0000:1a:00.0", 99))), "99"),
            ("<system><cpu>" + "<pci>" * 5000 + "</pci>" * 5000 + "</cpu></system>", "no real machine"),
        ],
    )
    def test_one_line_that_names_the_fault(self, text: str, part: str) -> None:
        """Other XML, cut XML, entities, a GPU twice, impossible counts, absurd depth."""
        with pytest.raises(BadInput) as caught:
            nccl_xml.read(text.encode(), "x.xml")
        assert part in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_entities_in_another_encoding_do_not_slip_through(self) -> None:
        """A DTD in UTF-16 is not seen as bytes, so only UTF-8 is read."""
        with pytest.raises(BadInput, match="UTF-8"):
            nccl_xml.read(("<!DOCTYPE s>" + system(gpu("0000:01:00.0", 0))).encode("utf-16"), "x.xml")

    def test_large_files_end_quickly(self) -> None:
        """A hundred megabytes are refused by their size alone."""
        start = time.monotonic()
        with pytest.raises(BadInput, match="more than"):
            nccl_xml.read(b"<system><cpu>" + b" " * 100_000_000, "x.xml")
        assert time.monotonic() - start < 2

    @given(st.integers(0, 2000), st.binary(max_size=8))
    def test_only_bad_input_leaves(self, place: int, junk: bytes) -> None:
        """Any bytes at any place: refused or read."""
        content = system(
            bridge("0000:01:00.0", gpu("0000:02:00.0", 0, SWITCHED) + net("a", "0000:03:00.0")), net("b")
        ).encode()
        place %= len(content)
        content = content[:place] + junk + content[place + len(junk) :]
        nccl_xml.recognise(content, "x")
        with contextlib.suppress(BadInput):
            nccl_xml.read(content, "x")


# From the index of the recordings: GPUs, NICs, kind, NVLinks of each GPU, rate of the first NIC.
RECORDINGS = {
    "xml_azure_ndv2": (8, 1, None, None, None),
    "xml_azure_ndv5": (8, 8, None, None, None),
    "xml_azure_ncv4": (4, 1, None, 12, 12.5e9),
    "xml_azure_nc48v4": (2, 1, "bridge", 12, 12.5e9),
    "xml_aws_p4de": (8, 4, None, None, None),
    "xml_oci_H100-topology": (8, 16, "switch", 18, 22.5e9),
    "xml_oci_topo-flattened": (8, 8, None, None, None),
    "xml_rccl_8p_940": (8, 8, "mesh", 7, 50e9),
    "xml_4x4090_virtualnets": (4, 16, "none", 0, 1.25e9),
}


@pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"recordings of other machines are not beside this checkout: {FOLDER}"
)
class TestRecordings:
    @pytest.mark.parametrize("name", sorted(RECORDINGS))
    def test_facts(self, name: str) -> None:
        """Counts, kind of NVLink and rates of published files."""
        (host,) = nccl_xml.read((FOLDER / f"{name}.xml").read_bytes(), name)
        gpus, nics, kind, links, rate = RECORDINGS[name]
        assert (len(host.gpus), len(host.nics), host.nvlink_kind) == (gpus, nics, kind)
        assert {fact.nvlinks for fact in host.gpus} == {links}
        assert host.nics[0].rate_bytes_per_s == rate

    def test_every_recording_is_checked(self) -> None:
        """A recording that is added must be added here."""
        assert {path.stem for path in FOLDER.glob("xml_*.xml")} == set(RECORDINGS)

    def test_each_gpu_of_a_cloud_host_has_its_nic(self) -> None:
        """Azure ND H100 v5: one GPU and one NIC on each of eight switches; AWS p4de: two GPUs a NIC; OCI: two ports a GPU."""
        for name, near in {"xml_azure_ndv5": 8, "xml_aws_p4de": 8, "xml_oci_H100-topology": 16}.items():
            (host,) = nccl_xml.read((FOLDER / f"{name}.xml").read_bytes(), name)
            assert Counter(host.nic_paths.values())["PIX"] == near, name
