"""NCCL's topology XML: dumps of machines and skeletons of clouds."""

from probes.importers import nccl_xml
from tests.probes.importers.nccl_topology import SWITCHED, bridge, gpu, link, net, read, system


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
        """Two GPUs can only be each other's partner.

        Of four nobody can tell, so the domains are not known.
        """
        own = [gpu(f"000{n}:00:00.0", n, link(f"000{n}:00:00.0", 12, "0x030200")) for n in range(4)]
        assert read(system(*own[:2])).gpu_paths == {(0, 1): "NV12"}
        four = read(system(*own))
        assert four.domains is None
        assert [fact.nvlinks for fact in four.gpus] == [12] * 4
        assert "lead to no GPU of the file" in four.unknown[0]

    def test_distances_to_nics(self) -> None:
        """One switch is PIX, two are PXB, the CPU is PHB, the other CPU SYS.

        The two levels of a Broadcom switch are one.
        """
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
        """A dump of an NVLink rack holds several hosts.

        A single one stays without a name, so that other files can join it.
        """
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
        """No <gpu>, no <net>: GPUs and NICs by PCI class, no rates, no NVLink, in the order of their
        addresses.
        """
        found = {"0b": "0x030200", "0c": "0x020000", "0a": "0x030200"}
        switch = "".join(f'<pci busid="0000:{bus}:00.0" class="{kind}"/>' for bus, kind in found.items())
        host = read(system(bridge("ffff:ff:01.0", switch)))
        assert [fact.pci for fact in host.gpus] == ["0000:0a:00.0", "0000:0b:00.0"]
        assert [(nic.name, nic.rate_bytes_per_s) for nic in host.nics] == [("0000:0c:00.0", None)]
        assert host.domains is None
        assert "skeleton" in host.unknown[0]
