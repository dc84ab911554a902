"""Each kind of machine, as the shipped pynvml reads it from a fake NVML library in the child process."""

from itertools import combinations

import pytest

from tests.probes.conftest import ReadNvml, faults
from tests.probes.fake_nvml.machines import FFFF, bare, dgx_1v, fabric, islands, switched, tray, wired

ALL_8 = (tuple(range(8)),)
DEAD_LINKS = {"gpu.2.link.*.state": 0}


@pytest.mark.parametrize(
    ("name", "links", "version", "mbps", "word"),
    [
        ("NVIDIA A100-SXM4-80GB", 12, 4, 25000, "3.0"),
        ("NVIDIA H100 80GB HBM3", 18, 6, 26562, "4.0"),
        ("NVIDIA H800", 8, 6, 26562, "4.0"),
    ],
)
def test_eight_gpus_behind_switches(
    read_nvml: ReadNvml, name: str, links: int, version: int, mbps: int, word: str
) -> None:
    """One domain, the number of links of that model, the rate of a link as it was read, and nothing to complain of."""
    facts = read_nvml(switched(name, links, version=version, mbps=mbps))
    assert (facts.nvlink_kind, facts.domains, facts.unknown, facts.warnings, faults(facts)) == (
        "switch",
        ALL_8,
        (),
        (),
        {},
    )
    assert {(gpu.name, gpu.nvlinks, gpu.nvlink_bytes_per_s, gpu.nvlink_version) for gpu in facts.gpus} == {
        (name, links, mbps * 1e6, word)
    }
    assert dict(facts.gpu_paths) == dict.fromkeys(combinations(range(8), 2), f"NV{links}")
    assert (facts.evidence, facts.source) == ("read", "NVML (driver 570.86.15)")


def test_a_gpu_as_nvml_tells_it(read_nvml: ReadNvml) -> None:
    """PCI address as sysfs writes it, NUMA node, memory, and PCIe at the generation that the link has when it is not idle."""
    gpu = read_nvml(
        bare("NVIDIA L40S", 2, memory=48 << 30) | {"gpu.0.pci": "0008:1B:02.0", "gpu.0.numa_mask": 1 << 33}
    ).gpus[0]
    assert (gpu.pci, gpu.uuid, gpu.numa, gpu.memory_bytes) == (
        "0008:1b:02.0",
        "GPU-00000000-0000-4000-8000-000000000000",
        33,
        48 << 30,
    )
    assert (gpu.nvlinks, gpu.pcie_bytes_per_s, gpu.pcie_full_bytes_per_s, gpu.fabric, gpu.faults) == (
        0,
        64e9,
        64e9,
        None,
        (),
    )


def test_pcie_only(read_nvml: ReadNvml) -> None:
    """No NVLink is not a fault; the PCIe distances are given; GPUs without peer access are named with the reason."""
    facts = read_nvml(bare("NVIDIA L40S", 4) | {"pair.*.*.p2p_read": 5, "pair.0.1.p2p_read": 0})
    assert (facts.nvlink_kind, facts.domains, faults(facts), facts.unknown) == (
        "none",
        ((0,), (1,), (2,), (3,)),
        {},
        (),
    )
    assert facts.gpu_paths[0, 1] == "NODE"
    assert facts.gpu_paths[0, 3] == "SYS"
    assert facts.warnings == (
        "no direct peer access between GPUs 0-2, 0-3, 1-2, 1-3, 2-3 (not supported): their traffic goes through host memory",
    )


def test_cube_mesh(read_nvml: ReadNvml) -> None:
    """DGX-1V: one domain, no switch, one or two links between neighbours, PCIe to the others."""
    facts = read_nvml(dgx_1v())
    assert (facts.nvlink_kind, facts.domains, faults(facts)) == ("mesh", ALL_8, {})
    assert {gpu.nvlinks for gpu in facts.gpus} == {6}
    assert [facts.gpu_paths[0, other] for other in range(1, 8)] == [
        "NV1",
        "NV1",
        "NV2",
        "NV2",
        "SYS",
        "SYS",
        "SYS",
    ]


def test_bridge_pairs_and_a_bare_third(read_nvml: ReadNvml) -> None:
    """Two bridged pairs of PCIe cards; the fifth has no bridge and that is no fault."""
    facts = read_nvml(wired("NVIDIA A100 80GB PCIe", {(0, 1): 12, (2, 3): 12}, 5, version=4, mbps=25000))
    assert (facts.nvlink_kind, facts.domains, faults(facts)) == ("bridge", ((0, 1), (2, 3), (4,)), {})
    assert (facts.gpu_paths[0, 1], facts.gpu_paths[2, 3]) == ("NV12", "NV12")


def test_trays_of_a_rack(read_nvml: ReadNvml) -> None:
    """Each tray says the same fabric and clique, so that they can be joined; the switch ids of the trays cannot be read."""
    seen = [read_nvml(tray(host)) for host in range(2)]
    assert {gpu.fabric for facts in seen for gpu in facts.gpus} == {"3143b15b-c2cd-192b-28cc-9b5473fb5b93.1"}
    assert len({gpu.uuid for facts in seen for gpu in facts.gpus}) == 8
    assert {(facts.nvlink_kind, facts.domains, facts.warnings, facts.unknown) for facts in seen} == {
        ("switch", ((0, 1, 2, 3),), (), ())
    }
    assert faults(seen[0]) == {}


def test_partitions_of_a_tray(read_nvml: ReadNvml) -> None:
    """Two cliques of one fabric on one host are two domains, though all four GPUs are on the same switches."""
    facts = read_nvml(tray(0) | {"gpu.2.fabric.clique": 7, "gpu.3.fabric.clique": 7})
    assert facts.domains == ((0, 1), (2, 3))
    assert [gpu.fabric and gpu.fabric.rpartition(".")[2] for gpu in facts.gpus] == ["1", "1", "7", "7"]


@pytest.mark.parametrize(("state", "word"), [(0, "NOT_SUPPORTED"), (1, "NOT_STARTED"), (2, "IN_PROGRESS")])
def test_fabric_that_is_not_ready(read_nvml: ReadNvml, state: int, word: str) -> None:
    """It is said, and no domain is made of it: alone, a tray would pass for a machine of four GPUs."""
    facts = read_nvml(tray(0, state=state))
    assert (facts.domains, facts.nvlink_kind) == (None, None)
    assert not [path for path in facts.gpu_paths.values() if path.startswith("NV")]
    assert facts.unknown[0].startswith(f"NVLink fabric not ready: state {word} (GPUs 0, 1, 2, 3)")
    assert faults(facts)[0] == (f"NVLink fabric not ready: state {word}",)


def test_fabric_whose_registration_failed(read_nvml: ReadNvml) -> None:
    """Completed with an error is not ready."""
    facts = read_nvml(tray(0, status=999))
    assert facts.domains is None
    assert faults(facts)[3] == (
        "NVLink fabric not ready: state COMPLETED, its registration failed (unknown error)",
    )


def test_one_gpu_of_a_tray_not_ready(read_nvml: ReadNvml) -> None:
    """One unready GPU is enough for no domain."""
    facts = read_nvml(tray(0) | {"gpu.3.fabric.state": 1})
    assert facts.domains is None
    assert list(faults(facts)) == [3]


@pytest.mark.parametrize("newest", [3, 2, 1])
def test_older_versions_of_fabric_info(read_nvml: ReadNvml, newest: int) -> None:
    """A driver that knows version 2 or 1 alone gives the same fabric; the noise behind the one-byte state is not read."""
    assert (
        read_nvml(tray(0) | {"gpu.*.fabric.newest": newest}).gpus[0].fabric
        == "3143b15b-c2cd-192b-28cc-9b5473fb5b93.1"
    )


def test_fabric_of_zeros_joins_nothing(read_nvml: ReadNvml) -> None:
    """H200 hosts report a completed fabric with a UUID of zeros: a switch in the host, no fabric between hosts."""
    facts = read_nvml(switched("NVIDIA H200", 18) | fabric("0" * 32))
    assert (facts.nvlink_kind, facts.domains) == ("switch", ALL_8)
    assert {gpu.fabric for gpu in facts.gpus} == {None}


def test_degraded_fabric_is_named(read_nvml: ReadNvml) -> None:
    """By the fields of the mask, on the one GPU; the domain stays."""
    facts = read_nvml(tray(0) | {"gpu.1.fabric.health": 0xA9})
    assert faults(facts) == {1: ("NVLink bandwidth is degraded",)}
    assert facts.domains == ((0, 1, 2, 3),)


def test_gpu_that_lost_its_links(read_nvml: ReadNvml) -> None:
    """A fault of that GPU, alone in its domain; the machine stays an NVSwitch machine."""
    facts = read_nvml(switched("NVIDIA B200", 18, version=7, mbps=53125) | DEAD_LINKS)
    assert (facts.nvlink_kind, facts.domains) == ("switch", ((0, 1, 3, 4, 5, 6, 7), (2,)))
    assert faults(facts) == {
        2: ("no active NVLink while 7 others have up to 18: a fault, not a machine without NVLink",)
    }


def test_gpu_with_fewer_links(read_nvml: ReadNvml) -> None:
    """One link down, one up without traffic, one up but not for peers: none counts, each is named."""
    facts = read_nvml(
        switched("NVIDIA H100 80GB HBM3", 18)
        | {
            "gpu.*.link.*.field_state": 1,
            "gpu.5.link.3.state": 0,
            "gpu.5.link.4.field_state": 3,
            "gpu.5.link.9.p2p": 0,
        }
    )
    assert facts.gpus[5].nvlinks == 15
    assert facts.gpu_paths[0, 5] == "NV15"
    assert faults(facts) == {
        5: (
            "NVLink 4: up, but its traffic is disabled",
            "NVLink 9: up, but not for traffic between GPUs",
            "15 active NVLinks where others have 18",
        )
    }


def test_sleeping_links_count(read_nvml: ReadNvml) -> None:
    """A link in its low-power state wakes when it is used."""
    assert (
        read_nvml(switched("NVIDIA H100 80GB HBM3", 18) | {"gpu.*.link.*.field_state": 2}).gpus[0].nvlinks
        == 18
    )


def test_more_link_indices_than_links(read_nvml: ReadNvml) -> None:
    """Without a link count, 'invalid argument' past the last link is the end of the links and not their absence."""
    profile = {
        key: value
        for key, value in switched("NVIDIA H100 80GB HBM3", 18).items()
        if key != "gpu.*.link_count"
    }
    facts = read_nvml(profile)
    assert ({gpu.nvlinks for gpu in facts.gpus}, facts.nvlink_kind) == ({18}, "switch")


def test_link_that_cannot_be_asked(read_nvml: ReadNvml) -> None:
    """The rest of the links count; the error is named."""
    facts = read_nvml(switched("NVIDIA H100 80GB HBM3", 18) | {"gpu.1.link.7.state": "!999"})
    assert facts.gpus[1].nvlinks == 17
    assert faults(facts)[1][0] == "NVLink 7: unknown error"


def test_links_that_cannot_be_asked_at_all(read_nvml: ReadNvml) -> None:
    """A driver without NVLink functions, or one that fails at every link, does not make a machine without NVLink."""
    old = read_nvml(switched("NVIDIA H100 80GB HBM3", 18) | {"gpu.*.link.*.state": "!13"})
    assert (old.nvlink_kind, old.domains, {gpu.nvlinks for gpu in old.gpus}, faults(old)) == (
        None,
        None,
        {None},
        {},
    )
    assert old.unknown == (
        "NVML does not give NVLinks of GPUs 0, 1, 2, 3, 4, 5, 6, 7: not in this driver, which is too old",
    )
    sick = read_nvml(switched("NVIDIA H100 80GB HBM3", 3, count=2) | {"gpu.*.link.*.state": "!999"})
    assert (sick.domains, sick.gpus[0].nvlinks, faults(sick)[0]) == (
        None,
        None,
        ("NVLink 0, 1, 2: unknown error",),
    )


def test_two_islands(read_nvml: ReadNvml) -> None:
    """Disjoint switches that no GPU reaches across are two domains of one host."""
    facts = read_nvml(islands([(0, 1, 2, 3), (4, 5, 6, 7)]))
    assert (facts.nvlink_kind, facts.domains) == ("switch", ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert (facts.gpu_paths[0, 3], facts.gpu_paths[3, 4]) == ("NV18", "SYS")


def test_two_boards_joined_by_their_switches(read_nvml: ReadNvml) -> None:
    """Sixteen GPUs on disjoint switches that reach each other all the same are one domain."""
    facts = read_nvml(islands([tuple(range(8)), tuple(range(8, 16))]) | {"pair.*.*.p2p_nvlink": 0})
    assert facts.domains == (tuple(range(16)),)


def test_two_islands_behind_unreadable_switches(read_nvml: ReadNvml) -> None:
    """NVML's word on which pairs reach each other is what is left."""
    profile = islands([(0, 1), (2, 3)])
    facts = read_nvml(
        profile | {f"gpu.{gpu}.link.{link}.remote": FFFF for gpu in range(4) for link in range(18)}
    )
    assert facts.domains == ((0, 1), (2, 3))


def test_virtual_machine(read_nvml: ReadNvml) -> None:
    """Passed-through GPUs: far ends unreadable, no NUMA, all at one distance. The switch is told, the distances are not passed on."""
    profile = switched("NVIDIA H100 80GB HBM3", 18) | {"gpu.*.virtualization": 1, "pair.*.*.p2p_nvlink": "!3"}
    profile |= {f"gpu.{gpu}.link.{link}.remote": FFFF for gpu in range(8) for link in range(18)}
    facts = read_nvml({key: value for key, value in profile.items() if "numa" not in key})
    assert (facts.nvlink_kind, facts.domains) == ("switch", ALL_8)
    assert {gpu.numa for gpu in facts.gpus} == {None}
    assert facts.warnings[0].startswith("the far ends of the NVLinks cannot be read")
    assert any(text.startswith("GPUs passed through to a virtual machine") for text in facts.unknown)
    assert "NVML does not give numa of GPUs 0, 1, 2, 3, 4, 5, 6, 7: not supported" in facts.unknown


def test_distances_in_a_virtual_machine_are_left_out(read_nvml: ReadNvml) -> None:
    """Those that NVML gives there are the hypervisor's."""
    facts = read_nvml(bare("NVIDIA L40S", 2) | {"gpu.*.virtualization": 1})
    assert (dict(facts.gpu_paths), len(facts.unknown)) == ({}, 1)


def test_fabric_joins_what_cannot_be_read(read_nvml: ReadNvml) -> None:
    """Far ends unreadable, no word on peers: a common fabric and clique is enough, and nothing is doubtful."""
    facts = read_nvml(tray(0) | {"pair.*.*.p2p_nvlink": "!3"})
    assert (facts.domains, facts.warnings) == (((0, 1, 2, 3),), ())


def test_half_a_cube_mesh_in_a_container(read_nvml: ReadNvml) -> None:
    """Links to GPUs that are not visible are not links to a switch."""
    profile = dgx_1v() | {"count": 4}
    facts = read_nvml(profile)
    assert (facts.nvlink_kind, facts.domains) == ("mesh", ((0, 1, 2, 3),))
    assert (
        "NVLinks of GPUs 0, 1, 2, 3 lead to GPUs that cannot be seen from here (a container or virtual machine with some of the GPUs?)"
        in facts.unknown
    )


def test_mig(read_nvml: ReadNvml) -> None:
    """A GPU in MIG mode is named and stands alone; its missing peer access is not a fault of its siblings."""
    facts = read_nvml(
        switched("NVIDIA A100-SXM4-40GB", 12, version=4, mbps=25000)
        | {"gpu.6.mig": 1, "pair.6.7.p2p_read": 5}
    )
    assert facts.domains == ((0, 1, 2, 3, 4, 5, 7), (6,))
    assert list(faults(facts)) == [6]
    assert faults(facts)[6][0].startswith("MIG is on")
    assert (len(faults(facts)[6]), facts.warnings) == (1, ())


def test_old_driver(read_nvml: ReadNvml) -> None:
    """Functions that are not there are said to be missing; what can be read is read: the far ends still match GPUs by PCI address."""
    facts = read_nvml(dgx_1v(), driver="old")
    assert (facts.nvlink_kind, facts.domains, faults(facts)) == ("mesh", ALL_8, {})
    assert facts.gpus[0].nvlink_bytes_per_s is None
    assert (
        "NVML does not give numa of GPUs 0, 1, 2, 3, 4, 5, 6, 7: not in this driver, which is too old"
        in facts.unknown
    )


@pytest.mark.parametrize(
    ("key", "code", "why"),
    [
        ("handle", 15, "the GPU is lost"),
        ("pci", 15, "the GPU is lost"),
        ("uuid", 16, "the GPU needs a reset"),
        ("handle", 4, "no permission"),
    ],
)
def test_gpu_that_cannot_be_asked(read_nvml: ReadNvml, key: str, code: int, why: str) -> None:
    """It is counted and named; the other seven are whole."""
    facts = read_nvml(switched("NVIDIA H100 80GB HBM3", 18) | {f"gpu.3.{key}": f"!{code}"})
    assert facts.domains == ((0, 1, 2, 4, 5, 6, 7), (3,))
    assert list(faults(facts)) == [3]
    assert faults(facts)[3][0].startswith(why)
    assert facts.gpus[3].nvlinks is None


def test_narrow_pcie_and_reduced_nvlink(read_nvml: ReadNvml) -> None:
    """Width below what card and slot allow is a fault; so is NVLink bandwidth cut by policy, and links of several speeds."""
    facts = read_nvml(
        switched("NVIDIA B200", 18, version=7, mbps=53125)
        | {"gpu.4.pcie.width": 8, "gpu.6.bw_mode": 3, "gpu.7.link.1.mbps": 26562}
    )
    assert (facts.gpus[4].pcie_bytes_per_s, facts.gpus[4].pcie_full_bytes_per_s) == (32e9, 64e9)
    assert facts.gpus[7].nvlink_bytes_per_s == 26562e6
    assert faults(facts) == {
        4: ("PCIe runs x8, card and slot allow x16",),
        6: ("NVLink bandwidth is set to HALF by policy",),
        7: ("its NVLinks run at different speeds: 26562, 53125 MB/s; the lowest is taken for all",),
    }


def test_the_profiles_are_what_they_claim() -> None:
    """Six links a GPU in the cube mesh; 72 different UUIDs in a rack."""
    profile = dgx_1v()
    assert [profile[f"gpu.{gpu}.links"] for gpu in range(8)] == [6] * 8
    assert len({tray(host)[f"gpu.{gpu}.uuid"] for host in range(18) for gpu in range(4)}) == 72
