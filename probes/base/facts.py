"""What one source says about a machine: a file, a paste or a live query.

Partial on purpose: what a source does not say is None or in `unknown`. `probes.machine.assemble` makes one
topology of many facts. Nothing here guesses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

PATHS = ("PIX", "PXB", "PHB", "NODE", "SYS")  # PCIe distance, near to far; NV<n> is n NVLinks


@dataclass(frozen=True)
class GpuFact:
    """One GPU of a host, by its index there. Rates are per direction."""

    index: int
    name: str | None = None  # the driver's product name, like 'NVIDIA H100 80GB HBM3'
    uuid: str | None = None
    pci: str | None = None  # '0000:1b:00.0'
    numa: int | None = None
    memory_bytes: int | None = None
    nvlinks: int | None = None  # active NVLinks, all together
    nvlink_bytes_per_s: float | None = None  # of one link, where it was read
    nvlink_version: str | None = None  # '4.0'
    fabric: str | None = None  # 'UUID.CLIQUE' of a ready NVLink fabric that may span hosts
    pcie_bytes_per_s: float | None = None  # as the link runs now
    pcie_full_bytes_per_s: float | None = None  # as card and slot allow
    faults: tuple[str, ...] = ()  # what is wrong with it, a sentence each


@dataclass(frozen=True)
class NicFact:
    """One network card or port of a host, in the source's order."""

    name: str
    device: str | None = None  # 'mlx5_0', where the source's own name is another
    rate_bytes_per_s: float | None = None
    link_layer: str | None = None  # InfiniBand, Ethernet
    up: bool | None = None
    compute: bool | None = None  # False: storage, management or virtual, not for expert traffic
    pci: str | None = None
    numa: int | None = None
    guid: str | None = None
    gpudirect: bool | None = None
    model: str | None = None  # the adapter's type as its tool names it, like 'MT4129'
    card: str | None = None  # what functions and ports of one card share: its system image GUID or PCI slot
    pci_path: str | None = None  # from the root complex down: 'pci0000:15/0000:15:01.0/0000:1b:00.0'
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostFacts:
    """One host. `gpu_paths[i, j]` with i < j and `nic_paths[gpu, nic]` hold 'NV18', 'PIX', ...

    where given.
    """

    source: str  # the file or command
    kind: str  # topo-m, nccl-xml, nvml, sysfs, ibstat, ...
    evidence: str  # read (from the machine itself) or imported (from a file)
    host: str | None = None
    gpus: tuple[GpuFact, ...] = ()
    nics: tuple[NicFact, ...] = ()
    gpu_paths: Mapping[tuple[int, int], str] = field(default_factory=dict)
    nic_paths: Mapping[tuple[int, int], str] = field(default_factory=dict)
    nvlink_kind: str | None = None  # none, switch, mesh, bridge; None where it cannot be known
    # NVLink domains as far as this host shows; every GPU is in one, alone if need be
    domains: tuple[tuple[int, ...], ...] | None = None
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    machine: str | None = None  # a hash that differs between running machines, also where host names do not
    platform: str | None = None  # maker and product as the firmware names them, 'Amazon EC2 p5.48xlarge'


@dataclass(frozen=True)
class PortFact:
    """One cable from a host to a leaf switch.

    A host whose name the source does not give is 'guid:' and the adapter's GUID (its LID if need be).
    """

    host: str
    nic: str | None
    leaf: str
    rate_bytes_per_s: float | None = None
    guid: str | None = None  # of the host's port, 16 hex digits: joins it to NicFact.guid


@dataclass(frozen=True)
class FabricFacts:
    """The network between hosts: from ibnetdiscover, Slurm, topograph or cloud labels.

    A tree without rates has ports without rates.
    """

    source: str
    kind: str
    evidence: str
    ports: tuple[PortFact, ...] = ()
    # cables between a switch and one nearer the root; 0: joined, number not said
    uplinks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    # of all those cables together
    uplink_bytes_per_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # NVLink domains or blocks that span hosts: name -> hosts
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # hosts, as Slurm's BlockSizes: jobs of these sizes get whole blocks
    block_sizes: tuple[int, ...] = ()
    # director chassis: name -> the switches inside
    chassis: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gpu_names: tuple[str, ...] = ()  # the models that labels of the hosts name, each once
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One row of a collective benchmark.

    `busbw_bytes_per_s` is nccl-tests' busbw; `wire_bytes_per_s` what each GPU really sends.
    """

    size_bytes: int
    seconds: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    wire_bytes_per_s: float
    in_place: bool


@dataclass(frozen=True)
class MeasureFacts:
    """One collective benchmark over `ranks` GPUs on `hosts`, of all of them or of `groups` side by side."""

    source: str
    kind: str  # nccl-tests, torch-nccl, torch-gloo
    collective: str  # alltoall, allreduce, ...; unknown
    ranks: int  # 0 where it cannot be known
    hosts: tuple[str, ...] = ()  # host of each rank where it is known
    gpu_names: tuple[str, ...] = ()  # the models seen, each once
    scope: str = "all"  # domain, rail, all
    groups: int = 1
    samples: tuple[Sample, ...] = ()
    average_busbw_bytes_per_s: float | None = None  # over all sizes, the tiny ones too: not for planning
    date: str | None = None  # day of the run, where the source says it
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


Facts = HostFacts | FabricFacts | MeasureFacts
AnyFacts = TypeVar("AnyFacts", HostFacts, FabricFacts, MeasureFacts, Facts)


@dataclass
class Notes:
    """What is found on the way through a source, a sentence each, until its facts are made."""

    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def noted(facts: AnyFacts, unknown: Iterable[str] = (), warnings: Iterable[str] = ()) -> AnyFacts:
    """The facts with more sentences behind their own."""
    return replace(facts, unknown=(*facts.unknown, *unknown), warnings=(*facts.warnings, *warnings))
