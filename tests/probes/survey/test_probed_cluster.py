"""From live probes of several hosts to one cluster.

NVML and sysfs of each host, its file, the merge, and the machine that is planned for.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from probes.host.look import probe_host
from probes.machine.assemble import Imported, assemble
from probes.record.file import make_record, write_record
from probes.record.merge import merge
from tests.probes.conftest import Install
from tests.probes.fake_nvml.machines import Profile, fabric, pci, switched, tray
from tests.probes.fake_sysfs import fake_host, switched_pci

Probe = Callable[[Sequence[Profile]], Imported]


@pytest.fixture
def cluster(install_nvml: Install, tmp_path: Path) -> Probe:
    """Each profile is a host; all are probed, written, merged and assembled."""

    def probe(profiles: Sequence[Profile]) -> Imported:
        files = []
        for number, profile in enumerate(profiles):
            host = fake_host(tmp_path / f"host{number}", f"node{number}", f"{number:036x}")
            gpus = int(str(profile["count"]))
            if gpus == 8:
                switched_pci(host)
            for gpu in range(gpus if gpus != 8 else 0):
                host.device(f"pci{gpu:04x}:00/{pci(gpu)}", numa=gpu // 2)
                host.adapter(
                    f"mlx5_{gpu}",
                    f"pci{0x100 + gpu:04x}:00/{0x100 + gpu:04x}:01:00.0",
                    numa=gpu // 2,
                    guid=f"0c42:a1{number:02x}:0012:34{gpu:02x}",
                )
            install_nvml(profile)
            files.append(write_record(make_record(probe_host(host.root), "2026-01-15T09:30:00Z"), tmp_path))
        return assemble(merge(files))

    return probe


@pytest.mark.parametrize("trays", [18, 8])
def test_a_rack_is_one_domain(cluster: Probe, trays: int) -> None:
    """All trays of one fabric and clique: 72 GPUs in a whole rack, 32 in a partition of eight trays."""
    found = cluster([tray(host) for host in range(trays)])
    assert (found.gpus, found.nvlink_domains) == (4 * trays, (tuple(range(4 * trays)),))
    assert found.topology is not None
    assert (found.topology.node_count, found.topology.domain_count) == (trays, 1)


def test_two_hosts_with_a_fabric_of_zeros_stay_two_domains(cluster: Probe) -> None:
    """H200 hosts: completed, UUID of zeros, clique 0 on both."""
    found = cluster([switched("NVIDIA H200", 18, host=host) | fabric("0" * 32) for host in range(2)])
    assert found.nvlink_domains == (tuple(range(8)), tuple(range(8, 16)))
    assert found.topology is not None
    assert (found.topology.gpu_count, found.topology.domain_count) == (16, 2)


def test_two_partitions_of_one_rack(cluster: Probe) -> None:
    """Another clique is another domain, whatever the cluster UUID."""
    found = cluster([tray(host, clique=1 + host // 2) for host in range(4)])
    assert found.nvlink_domains == (tuple(range(8)), tuple(range(8, 16)))


@pytest.mark.parametrize(("trays", "count"), [(2, 4), (1, 4), (1, 1)])
def test_no_topology_while_the_fabric_is_not_ready(cluster: Probe, trays: int, count: int) -> None:
    """Neither machines of four GPUs nor of one are made of trays whose fabric is still coming up; the reason
    is said.
    """
    found = cluster([tray(host, state=2) | {"count": count} for host in range(trays)])
    assert (found.gpus, found.topology) == (trays * count, None)
    assert any("NVLink fabric not ready: state IN_PROGRESS" in text for text in found.unknown)


def test_a_degraded_gpu_is_told_with_its_host(cluster: Probe) -> None:
    """And it is apart from the domain of the others."""
    found = cluster([switched("NVIDIA H100 80GB HBM3", 18) | {"gpu.2.link.*.state": 0}])
    assert found.nvlink_domains == ((0, 1, 3, 4, 5, 6, 7), (2,))
    assert any(text.startswith("host node0: GPU 2: no active NVLink") for text in found.warnings)


def test_adapters_of_each_gpu(cluster: Probe) -> None:
    """The two below the same PCIe switch, by name."""
    found = cluster([switched("NVIDIA H100 80GB HBM3", 18)])
    assert (found.nics, found.affinity[0], found.affinity[7]) == (
        8,
        ("mlx5_0", "mlx5_1"),
        ("mlx5_6", "mlx5_7"),
    )
