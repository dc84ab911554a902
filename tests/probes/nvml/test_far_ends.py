"""Where NVLinks lead, as NVML tells it: islands, and ends that cannot be read or seen from here."""

from tests.probes.conftest import ReadNvml
from tests.probes.fake_nvml.machines import FFFF, bare, dgx_1v, islands, switched, tray

ALL_8 = (tuple(range(8)),)
DEAD_LINKS = {"gpu.2.link.*.state": 0}


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
    """Passed-through GPUs: far ends unreadable, no NUMA, all at one distance.

    The switch is told, the distances are not passed on.
    """
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
    """Far ends unreadable, no word on peers: a common fabric and clique is enough, without a doubt."""
    facts = read_nvml(tray(0) | {"pair.*.*.p2p_nvlink": "!3"})
    assert (facts.domains, facts.warnings) == (((0, 1, 2, 3),), ())


def test_half_a_cube_mesh_in_a_container(read_nvml: ReadNvml) -> None:
    """Links to GPUs that are not visible are not links to a switch."""
    profile = dgx_1v() | {"count": 4}
    facts = read_nvml(profile)
    assert (facts.nvlink_kind, facts.domains) == ("mesh", ((0, 1, 2, 3),))
    assert (
        "NVLinks of GPUs 0, 1, 2, 3 lead to GPUs that cannot be seen from here "
        "(a container or virtual machine with some of the GPUs?)" in facts.unknown
    )
