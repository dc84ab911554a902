"""The NVLink fabric of a rack, as NVML tells it: joined, partitioned, degraded, or not ready."""

import pytest

from tests.probes.conftest import ReadNvml, faults
from tests.probes.fake_nvml.machines import fabric, switched, tray

ALL_8 = (tuple(range(8)),)
DEAD_LINKS = {"gpu.2.link.*.state": 0}


def test_trays_of_a_rack(read_nvml: ReadNvml) -> None:
    """Each tray says the same fabric and clique, so that they can be joined.

    The switch ids of the trays cannot be read.
    """
    seen = [read_nvml(tray(host)) for host in range(2)]
    assert {gpu.fabric for facts in seen for gpu in facts.gpus} == {"3143b15b-c2cd-192b-28cc-9b5473fb5b93.1"}
    assert len({gpu.uuid for facts in seen for gpu in facts.gpus}) == 8
    assert {(facts.nvlink_kind, facts.domains, facts.warnings, facts.unknown) for facts in seen} == {
        ("switch", ((0, 1, 2, 3),), (), ())
    }
    assert faults(seen[0]) == {}


def test_partitions_of_a_tray(read_nvml: ReadNvml) -> None:
    """Two cliques of one fabric on one host are two domains, though all GPUs are on the same switches."""
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
    """A driver that knows version 2 or 1 alone gives the same fabric.

    The noise behind the one-byte state is not read.
    """
    assert (
        read_nvml(tray(0) | {"gpu.*.fabric.newest": newest}).gpus[0].fabric
        == "3143b15b-c2cd-192b-28cc-9b5473fb5b93.1"
    )


def test_fabric_of_zeros_joins_nothing(read_nvml: ReadNvml) -> None:
    """H200 hosts report a completed fabric with a UUID of zeros: a switch in the host, no fabric between
    hosts.
    """
    facts = read_nvml(switched("NVIDIA H200", 18) | fabric("0" * 32))
    assert (facts.nvlink_kind, facts.domains) == ("switch", ALL_8)
    assert {gpu.fabric for gpu in facts.gpus} == {None}


def test_degraded_fabric_is_named(read_nvml: ReadNvml) -> None:
    """By the fields of the mask, on the one GPU; the domain stays."""
    facts = read_nvml(tray(0) | {"gpu.1.fabric.health": 0xA9})
    assert faults(facts) == {1: ("NVLink bandwidth is degraded",)}
    assert facts.domains == ((0, 1, 2, 3),)
