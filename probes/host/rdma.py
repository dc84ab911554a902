"""RDMA adapters of one host as its kernel shows them: devices, ports, rates, states, PCI path, NUMA, GPUDirect. The root is injectable."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import HostFacts, NicFact
from probes.base.port_rates import port_bytes_per_s
from probes.fabric.naming import natural, normal_guid
from probes.host.adapters import mark_fabric, port_fact
from probes.host.pcie_health import link_faults, redirecting_bridges, translating
from probes.host.sysfs_tree import Directory, Tree, content, entries, resolve, text

CLASS = "class/infiniband"
_ROOT_COMPLEX = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_STATES = {"1": "Down", "2": "Initializing", "3": "Armed", "4": "Active"}  # as ibstat writes them
_PEER_MODULES = ("module/nvidia_peermem", "kernel/mm/memory_peers/nv_mem", "kernel/mm/memory_peers/nv_mem_nc")


def read_rdma(root: Path) -> HostFacts:
    """The adapters under `root`: '/', a '/sys', or a copy of either. A machine without one is no error: it has no NICs and says so."""
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
    devices = sorted(entries(tree, place), key=natural)
    gpudirect, unknown = (
        None,
        ["PCI paths, NUMA nodes and GPUDirect are not told: the copy holds sys/class/infiniband alone"],
    )
    if sysfs is not None:
        gpudirect, unknown = _gpudirect(tree, sysfs)
    nics: list[NicFact] = []
    acs_read, iommu = True, []
    for name in devices:
        device = _device(tree, f"{place}/{name}", name)
        if not device.ports:
            unknown.append(
                f"{name}: no ports in {source}: a link whose target is not in the copy, or a driver in trouble"
            )
        faults: tuple[str, ...] = ()
        if device.path is not None:
            bridges, read = redirecting_bridges(tree, _switch_ports(device.path))
            acs_read = acs_read and read
            faults = tuple(
                f"{name}: ACS of PCIe bridge {bridge} sends peer-to-peer traffic through the root complex"
                for bridge in bridges
            )
            iommu += [(name, kind)] if (kind := translating(tree, device.path)) else []
        for nic in device.ports or (device.nic,):
            slow = (
                link_faults(tree, device.path, nic.name, nic.rate_bytes_per_s)
                if device.path is not None
                else ()
            )
            nics.append(
                replace(
                    nic,
                    gpudirect=gpudirect if device.driver in (None, "mlx5_core") else None,
                    faults=(*nic.faults, *slow, *faults),
                )
            )
    if sysfs is not None and not acs_read:
        unknown.append(
            "whether PCIe ACS redirects peer-to-peer traffic is not told: PCI configuration space beyond 64 bytes needs root"
        )
    marked, warnings = mark_fabric(nics)
    if iommu:
        listed = ", ".join(name for name, _ in iommu)
        warnings = (
            *warnings,
            f"the IOMMU translates for {listed} (group type {iommu[0][1]}): peer-to-peer traffic may be slow; iommu=pt passes it through",
        )
    return HostFacts(source, "sysfs", evidence, host, nics=marked, unknown=tuple(unknown), warnings=warnings)


@dataclass(frozen=True)
class _Device:
    """`path` is its PCI device's folder in the tree, None where it is not told; `nic` what all `ports` share."""

    path: str | None
    driver: str | None
    nic: NicFact
    ports: tuple[NicFact, ...]


def _device(tree: Tree, place: str, name: str) -> _Device:
    path = resolve(tree, f"{place}/device") if entries(tree, place) else resolve(tree, place)
    parts = path.split("/") if path else []
    addresses = [part for part in parts if _ADDRESS.fullmatch(part)]
    pci = addresses[-1] if addresses else None
    complexes = [part for part in parts if _ROOT_COMPLEX.fullmatch(part)]
    folder = "/".join(parts[: parts.index(pci) + 1]) if pci else None
    numa = text(tree, f"{folder}/numa_node") if folder else None
    model, image, node = (
        text(tree, f"{place}/{file}") for file in ("hca_type", "sys_image_guid", "node_guid")
    )
    driver = resolve(tree, f"{folder}/driver") if folder else None
    nic = NicFact(
        name,
        pci=pci,
        numa=int(numa)
        if numa and numa.isascii() and numa.isdigit() and len(numa) < 6
        else None,  # -1: the firmware does not say
        guid=normal_guid(node or ""),
        model=model,
        card=normal_guid(image or "") or (pci.rpartition(".")[0] if pci else None),
        pci_path="/".join([*complexes[-1:], *addresses]) if pci else None,
        compute=False
        if folder and resolve(tree, f"{folder}/physfn") != f"{folder}/physfn"
        else None,  # a virtual function shares its card's port
    )
    numbers = sorted(
        (port for port in entries(tree, f"{place}/ports") if port.isascii() and port.isdigit()), key=natural
    )
    ports = tuple(
        _port(
            tree,
            f"{place}/ports/{port}",
            nic if len(numbers) == 1 else replace(nic, name=f"{name}:{port}", device=name),
        )
        for port in numbers
    )
    loaded = driver.rpartition("/")[2] if driver and driver != f"{folder}/driver" else None
    return _Device(folder, loaded, nic, ports)


def _port(tree: Tree, port: str, nic: NicFact) -> NicFact:
    layer = text(tree, f"{port}/link_layer")
    gid = text(tree, f"{port}/gids/0") or ""
    own = normal_guid("".join(gid.split(":")[4:])) if layer == "InfiniBand" and gid.count(":") == 7 else None
    rate = port_bytes_per_s(text(tree, f"{port}/rate") or "")
    nic = replace(
        nic,
        link_layer=layer if layer in ("InfiniBand", "Ethernet") else None,
        rate_bytes_per_s=rate,
        guid=own or nic.guid,
    )
    state, physical = (
        text(tree, f"{port}/{file}") for file in ("state", "phys_state")
    )  # '4: ACTIVE', '5: LinkUp'
    return port_fact(
        nic,
        _STATES.get(state.split(":")[0], state) if state else None,
        physical.split(":")[-1].strip() if physical else None,
    )


def _switch_ports(path: str) -> list[str]:
    """Folders of the PCIe bridges between root port and device: peer traffic below one switch turns at these."""
    parts = path.split("/")
    places = [index for index, part in enumerate(parts) if _ADDRESS.fullmatch(part)]
    return ["/".join(parts[: index + 1]) for index in places[1:-1]]


def _gpudirect(tree: Tree, sysfs: str) -> tuple[bool | None, list[str]]:
    """True where a peer-memory module is loaded; without one DMA-BUF may still do it, which sysfs does not tell."""
    prefix = f"{sysfs}/" if sysfs else ""
    if any(
        entries(tree, prefix + module) or content(tree, prefix + module) is not None
        for module in _PEER_MODULES
    ):
        return True, []
    version = text(tree, f"{sysfs.rpartition('/')[0]}/proc/driver/nvidia/version".lstrip("/")) or ""
    driver = (
        "the driver is NVIDIA's open kernel module, which offers DMA-BUF"
        if "Open Kernel Module" in version
        else "DMA-BUF may still offer it"
    )
    return None, [
        f"GPUDirect RDMA: no peer-memory module (nvidia_peermem) is loaded; {driver}; NCCL_DEBUG=INFO tells"
    ]
