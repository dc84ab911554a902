"""NCCL's and RCCL's topology XML: a dump of a machine, or a cloud's skeleton of one.

A dump (NCCL_TOPO_DUMP_FILE) has <gpu> and <net>, a skeleton (NCCL_TOPO_FILE) PCI classes alone. No DTD and no
entity is accepted, so the XML parser of Python has nothing to expand. Speeds in the file are Mb/s; what a
person tuned by hand stays as written.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import combinations

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import GpuFact, HostFacts, NicFact, Notes
from probes.importers.pci_tree import Device, between, devices_of, pcie_bytes_per_s
from probes.importers.xml_links import domains_of, links_of, shared_links, whole_number
from probes.importers.xml_nics import nics_of
from probes.importers.xml_text import parse_xml
from probes.machine.nvlink_domains import Domains

KIND = "nccl-xml"


def recognise(content: bytes, name: str) -> bool:
    head = content[: 1 << 16]
    return (b"<system" in head and (b"<cpu" in head or b"<pci" in head)) or b"<graphs" in head


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The hosts of the file.

    BadInput where it is not whole XML, has a DTD, is a graph dump, or shows no GPU.
    """
    root = parse_xml(content, name, "NCCL", hint="; NCCL writes plain ASCII")
    if root.tag == "graphs":
        graph = "is a graph dump (NCCL_GRAPH_DUMP_FILE), which holds no machine"
        raise BadInput(f"{name}: {graph}; give the file of NCCL_TOPO_DUMP_FILE")
    if root.tag != "system":
        raise BadInput(f"{name}: the XML begins with <{root.tag[:40]}>, not with NCCL's <system>")
    cpus_of: dict[str, list[ET.Element]] = {}
    for cpu in root.findall("cpu"):
        cpus_of.setdefault(cpu.get("host_hash", ""), []).append(cpu)
    several = len(cpus_of) > 1
    hosts = [_host(cpus, key if several else None, name) for key, cpus in cpus_of.items()]
    if not any(host.gpus for host in hosts):
        raise BadInput(f"{name}: shows no GPU (no <gpu>, no <pci> of class 0x03 or 0x12 below a <cpu>)")
    return tuple(hosts)


def _host(cpus: Sequence[ET.Element], host: str | None, name: str) -> HostFacts:
    notes = Notes()
    devices = [device for cpu in cpus for device in devices_of(cpu, name)]
    gpus = _gpu_devices(devices, notes.warnings)
    nics, nic_devices = nics_of(devices, notes.warnings)
    _refuse_impossible(gpus, nics, name)
    domains = _domains(gpus, name, notes)
    nic_paths = {
        (i, j): between(gpu, nic)
        for i, gpu in enumerate(gpus)
        for j, nic in enumerate(nic_devices)
        if nic is not None
    }
    return HostFacts(
        name,
        KIND,
        "imported",
        host,
        gpus=tuple(_gpu(index, device, name) for index, device in enumerate(gpus)),
        nics=nics,
        gpu_paths=_gpu_paths(gpus, domains),
        nic_paths=nic_paths,
        nvlink_kind=domains.kind if domains else None,
        domains=domains.domains if domains else None,
        unknown=tuple(notes.unknown),
        warnings=tuple(notes.warnings),
    )


def _refuse_impossible(gpus: Sequence[Device], nics: Sequence[NicFact], name: str) -> None:
    if len(gpus) > LARGEST_NODE_GPUS or len(nics) > LARGEST_NODE_NICS:
        most = f"a host has at most {LARGEST_NODE_GPUS} and {LARGEST_NODE_NICS}"
        raise BadInput(f"{name}: {len(gpus)} GPUs and {len(nics)} NICs on one host; {most}")
    twice = sorted({gpu.pci for gpu in gpus if sum(other.pci == gpu.pci for other in gpus) > 1})
    if twice:
        again = f"the GPU {twice[0]!r} is in the file twice"
        raise BadInput(f"{name}: {again}; how many GPUs the host has cannot be told")


def _domains(gpus: Sequence[Device], name: str, notes: Notes) -> Domains | None:
    dump = any(device.gpu is not None for device in gpus)
    domains = domains_of(gpus, name) if dump else None
    if domains:
        notes.unknown += domains.unknown
        notes.warnings += domains.warnings
    elif gpus:
        what = "its NVLinks lead to no GPU of the file" if dump else "a skeleton does not list NVLinks"
        notes.unknown.append(f"which GPUs NVLink joins is not known: {what}; add 'nvidia-smi topo -m'")
    return domains


def _gpu_paths(gpus: Sequence[Device], domains: Domains | None) -> dict[tuple[int, int], str]:
    paths = {}
    for pair in combinations(range(len(gpus)), 2):
        links = shared_links(pair, gpus, domains) if domains else 0
        paths[pair] = f"NV{links}" if links else between(gpus[pair[0]], gpus[pair[1]])
    return paths


def _gpu_devices(devices: Sequence[Device], warnings: list[str]) -> list[Device]:
    """The GPUs in the driver's order: by device number (dump) or PCI address (skeleton)."""
    used = [device for device in devices if device.gpu is not None]
    if not used:
        return sorted((device for device in devices if device.is_gpu_class), key=lambda device: device.pci)
    bare = [device.pci for device in devices if device.is_gpu_class and device.gpu is None]
    if bare:
        left_out = "GPUs without a <gpu> entry are left out, the job did not use them"
        warnings.append(f"{left_out}: {', '.join(bare[:8])}")
    numbers = [whole_number(device.gpu.get("dev"), -1) for device in used if device.gpu is not None]
    if sorted(numbers) != list(range(len(numbers))):
        told = ", ".join(map(str, sorted(numbers)))
        warnings.append(
            f"the file shows the GPUs a job used, with device numbers {told}; "
            f"they are numbered 0 to {len(used) - 1} here, and the host may have more"
        )
    order = sorted(range(len(used)), key=lambda place: (numbers[place], used[place].pci))
    return [used[place] for place in order]


def _gpu(index: int, device: Device, name: str) -> GpuFact:
    links = sum(link.count for link in links_of(device, name)) if device.gpu is not None else None
    return GpuFact(
        index,
        name=_amd_name(device),
        pci=device.pci,
        numa=device.numa,
        nvlinks=links,
        pcie_bytes_per_s=pcie_bytes_per_s(device),
    )


def _amd_name(device: Device) -> str | None:
    """RCCL names the chip ('gfx942', earlier '908'), NCCL nothing; xGMI and AMD's vendor id tell too."""
    gpu = device.gpu
    if gpu is None:
        return "AMD GPU" if device.vendor == "0x1002" else None
    chip = gpu.get("gcn", "")
    if re.fullmatch(r"(?:gfx)?[0-9a-f]{3,6}", chip):
        return f"AMD gfx{chip.removeprefix('gfx')}"
    is_amd = (
        chip
        or device.vendor == "0x1002"
        or device.kind.startswith("0x12")
        or next(gpu.iter("xgmi"), None) is not None
    )
    return "AMD GPU" if is_amd else None
