"""What sources tell of one H100 host, as facts, for the tests of a machine."""

from itertools import combinations

from planner.topology import Topology
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.machine.assemble import Imported
from probes.machine.hints import Hints

H100 = "NVIDIA H100 80GB HBM3"
HINTS = Hints(gpu="H100-SXM", nic_bytes_per_s=50e9)


def matrix(
    gpus: int = 8, label: str = "NV18", host: str | None = None, source: str = "topo.txt", legend: bool = True
) -> HostFacts:
    """A host as `topo -m` shows it: one NIC beside each GPU, two sockets."""
    indices = range(gpus)
    socket = [int(i >= gpus / 2) for i in indices]
    joined = label.startswith("NV")
    links = int(label[2:]) if joined else 0
    across = {(i, j): "NODE" if socket[i] == socket[j] else "SYS" for i in indices for j in indices}
    return HostFacts(
        source,
        "topo-m",
        "imported",
        host,
        tuple(GpuFact(i, numa=socket[i], nvlinks=links) for i in indices),
        tuple(NicFact(f"NIC{i}", f"mlx5_{i}" if legend else None) for i in indices),
        dict.fromkeys(combinations(indices, 2), label),
        across | {(i, i): "PIX" for i in indices},
        "switch" if joined else "none",
        (tuple(indices),) if joined else tuple((i,) for i in indices),
    )


def named(gpus: int = 8, name: str = H100, host: str | None = None, first: int = 0) -> HostFacts:
    """A host as `nvidia-smi -L` shows it."""
    listed = tuple(GpuFact(i, name, f"GPU-{first + i}") for i in range(gpus))
    return HostFacts("list.txt", "nvidia-smi-list", "imported", host, listed)


def ports(
    nics: int = 8,
    rate: float = 50e9,
    host: str | None = None,
    down: tuple[int, ...] = (),
    source: str = "ibstat.txt",
) -> HostFacts:
    """A host as `ibstat` shows it, in its order: mlx5_0, mlx5_1, mlx5_10, mlx5_2."""
    order = sorted(range(nics), key=str)
    listed = tuple(NicFact(f"mlx5_{i}", rate_bytes_per_s=rate, up=i not in down) for i in order)
    return HostFacts(source, "ibstat", "imported", host, nics=listed)


def said(found: Imported) -> str:
    return " | ".join((*found.unknown, *found.warnings))


def topology(found: Imported) -> Topology:
    assert found.topology is not None, said(found)
    return found.topology
