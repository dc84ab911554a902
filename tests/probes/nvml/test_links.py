"""NVLinks that are down, asleep, disabled or that cannot be asked, as NVML tells them."""

from tests.probes.conftest import ReadNvml, faults
from tests.probes.fake_nvml.machines import switched

ALL_8 = (tuple(range(8)),)
DEAD_LINKS = {"gpu.2.link.*.state": 0}


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
    """Without a link count, 'invalid argument' past the last link is the end of the links and not their
    absence.
    """
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
    """A driver without NVLink functions, or one that fails at every link, does not make a machine without
    NVLink.
    """
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
