"""RDMA adapters of one host as its kernel shows them: ports, PCI paths, NUMA, GPUDirect.

The root is injectable.
"""

from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import HostFacts, NicFact, noted
from probes.fabric.naming import natural
from probes.host.adapters import mark_fabric
from probes.host.pcie_health import link_faults, redirecting_bridges, translating
from probes.host.rdma_device import RdmaDevice, rdma_device
from probes.host.sysfs_tree import Directory, Tree, content, entries, text

CLASS = "class/infiniband"
_PEER_MODULES = ("module/nvidia_peermem", "kernel/mm/memory_peers/nv_mem", "kernel/mm/memory_peers/nv_mem_nc")
_ALONE = "PCI paths, NUMA nodes and GPUDirect are not told: the copy holds sys/class/infiniband alone"
_NO_ACS = (
    "whether PCIe ACS redirects peer-to-peer traffic is not told: "
    "PCI configuration space beyond 64 bytes needs root"
)


def read_rdma(root: Path) -> HostFacts:
    """The adapters under `root`: '/', a '/sys', or a copy of either.

    A machine without one is no error: it has no NICs and says so.
    """
    if not root.is_dir():
        raise BadInput(f"{root}: not a directory; give the root that holds sys/class/infiniband")
    tree = Directory(root)
    places = [place for place in (f"sys/{CLASS}", CLASS) if entries(tree, place)]
    source = str(root / (places[0] if places else f"sys/{CLASS}"))
    if not places:
        return HostFacts(source, "sysfs", "read", unknown=(f"no RDMA adapter: {source} is absent or empty",))
    return rdma_facts(tree, places[0], source, "read")


def rdma_facts(tree: Tree, place: str, source: str, evidence: str, host: str | None = None) -> HostFacts:
    """The adapters in the folder `place` of a tree: sys/class/infiniband or a copy of it alone."""
    sysfs = place.removesuffix(CLASS).rstrip("/") if place.endswith(CLASS) else None
    names = sorted(entries(tree, place), key=natural)
    devices = {name: rdma_device(tree, f"{place}/{name}", name) for name in names}
    gpudirect, unknown = (None, [_ALONE]) if sysfs is None else _gpudirect(tree, sysfs)
    unknown += [
        f"{name}: no ports in {source}: a link whose target is not in the copy, or a driver in trouble"
        for name, device in devices.items()
        if not device.ports
    ]
    nics: list[NicFact] = []
    acs_read = True
    for name, device in devices.items():
        redirected, read = _acs_faults(tree, name, device)
        acs_read = acs_read and read
        told = gpudirect if device.driver in (None, "mlx5_core") else None
        for nic in device.ports or (device.nic,):
            slow = link_faults(tree, device.path, nic.name, nic.rate_bytes_per_s) if device.path else ()
            nics.append(replace(nic, gpudirect=told, faults=(*nic.faults, *slow, *redirected)))
    if sysfs is not None and not acs_read:
        unknown.append(_NO_ACS)
    marked, warnings = mark_fabric(nics)
    facts = HostFacts(source, "sysfs", evidence, host, nics=marked, unknown=tuple(unknown), warnings=warnings)
    return noted(facts, warnings=_iommu(tree, devices))


def _acs_faults(tree: Tree, name: str, device: RdmaDevice) -> tuple[tuple[str, ...], bool]:
    """What ACS does to the device's traffic, and whether it could be read."""
    bridges, read = redirecting_bridges(tree, device.switch_ports())
    faults = (
        f"{name}: ACS of PCIe bridge {bridge} sends peer-to-peer traffic through the root complex"
        for bridge in bridges
    )
    return tuple(faults), read


def _iommu(tree: Tree, devices: dict[str, RdmaDevice]) -> tuple[str, ...]:
    kinds = {name: translating(tree, device.path) for name, device in devices.items() if device.path}
    found = [(name, kind) for name, kind in kinds.items() if kind]
    if not found:
        return ()
    listed = ", ".join(name for name, _ in found)
    translates = f"the IOMMU translates for {listed} (group type {found[0][1]})"
    return (f"{translates}: peer-to-peer traffic may be slow; iommu=pt passes it through",)


def _gpudirect(tree: Tree, sysfs: str) -> tuple[bool | None, list[str]]:
    """True where a peer-memory module is loaded.

    Without one DMA-BUF may still do it, which sysfs does not tell.
    """
    modules = [f"{sysfs}/{module}".lstrip("/") for module in _PEER_MODULES]
    if any(entries(tree, module) or content(tree, module) is not None for module in modules):
        return True, []
    version = text(tree, f"{sysfs.rpartition('/')[0]}/proc/driver/nvidia/version".lstrip("/")) or ""
    driver = "DMA-BUF may still offer it"
    if "Open Kernel Module" in version:
        driver = "the driver is NVIDIA's open kernel module, which offers DMA-BUF"
    why = "no peer-memory module (nvidia_peermem) is loaded"
    return None, [f"GPUDirect RDMA: {why}; {driver}; NCCL_DEBUG=INFO tells"]
