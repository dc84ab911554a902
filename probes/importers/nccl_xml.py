"""NCCL's and RCCL's topology XML: a dump (NCCL_TOPO_DUMP_FILE: has <gpu> and <net>) or a cloud's skeleton (NCCL_TOPO_FILE: PCI classes alone).

No DTD and no entity is accepted, so the XML parser of Python has nothing to expand. Speeds in the file are Mb/s; what a person tuned by hand stays as written.
"""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from itertools import combinations

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.importers._pci_tree import Device, between, devices_of, pcie_bytes_per_s
from probes.machine.nvlink_domains import Domains, domains_from_links

KIND = "nccl-xml"
LARGEST_XML = 16 << 20  # a dump of 72 GPUs on 18 hosts is some 300 kB
_VIRTUAL = re.compile(r"(?:tunl|br-|cali|veth|docker|virbr|vxlan|flannel|cni|dummy|lo)[\w.-]{0,32}")
_SLOWEST_FABRIC_MBPS = 10_000  # what NCCL writes for an interface that does not tell its speed


def recognise(content: bytes, name: str) -> bool:
    head = content[: 1 << 16]
    return (b"<system" in head and (b"<cpu" in head or b"<pci" in head)) or b"<graphs" in head


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The hosts of the file. BadInput where it is not whole XML, has a DTD, is a graph dump, or shows no GPU."""
    root = _parse(content, name)
    if root.tag == "graphs":
        raise BadInput(
            f"{name}: is a graph dump (NCCL_GRAPH_DUMP_FILE), which holds no machine; give the file of NCCL_TOPO_DUMP_FILE"
        )
    if root.tag != "system":
        raise BadInput(f"{name}: the XML begins with <{root.tag[:40]}>, not with NCCL's <system>")
    cpus = root.findall("cpu")
    hashes = list(dict.fromkeys(cpu.get("host_hash", "") for cpu in cpus))
    hosts = [
        _host(
            [cpu for cpu in cpus if cpu.get("host_hash", "") == key], key if len(hashes) > 1 else None, name
        )
        for key in hashes
    ]
    if not any(host.gpus for host in hosts):
        raise BadInput(f"{name}: shows no GPU (no <gpu>, no <pci> of class 0x03 or 0x12 below a <cpu>)")
    return tuple(hosts)


def _parse(content: bytes, name: str) -> ET.Element:
    if len(content) > LARGEST_XML:
        raise BadInput(
            f"{name}: {len(content):,} bytes are more than the {LARGEST_XML:,} of any NCCL topology file"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: byte {error.start} is not UTF-8; NCCL writes plain ASCII") from error
    if "<!DOCTYPE" in text.upper() or "<!ENTITY" in text.upper():
        raise BadInput(f"{name}: has a DTD, which NCCL never writes; it is not read")
    try:
        return ET.fromstring(text)  # noqa: S314 - entities and DTDs were refused above
    except (ET.ParseError, ValueError) as error:  # ValueError: an encoding declaration that names no encoding
        line = getattr(error, "position", (1, 0))[0]
        raise BadInput(f"{name}: line {line}: not whole XML ({error}); the file may be cut short") from error


@dataclass(frozen=True)
class _Link:
    """Links of one GPU to one far end."""

    target: str
    count: int
    to_switch: bool


def _host(cpus: list[ET.Element], host: str | None, name: str) -> HostFacts:
    warnings: list[str] = []
    unknown: list[str] = []
    devices = [device for cpu in cpus for device in devices_of(cpu, name)]
    gpus = _gpu_devices(devices, warnings)
    nics, nic_devices = _nics(devices, warnings)
    if len(gpus) > LARGEST_NODE_GPUS or len(nics) > LARGEST_NODE_NICS:
        most = f"a host has at most {LARGEST_NODE_GPUS} and {LARGEST_NODE_NICS}"
        raise BadInput(f"{name}: {len(gpus)} GPUs and {len(nics)} NICs on one host; {most}")
    twice = sorted({gpu.pci for gpu in gpus if sum(other.pci == gpu.pci for other in gpus) > 1})
    if twice:
        raise BadInput(
            f"{name}: the GPU {twice[0]!r} is in the file twice; how many GPUs the host has cannot be told"
        )
    dump = any(device.gpu is not None for device in gpus)
    domains = _domains(gpus, name) if dump else None
    if gpus and domains is None:
        what = "its NVLinks lead to no GPU of the file" if dump else "a skeleton does not list NVLinks"
        unknown.append(f"which GPUs NVLink joins is not known: {what}; add 'nvidia-smi topo -m'")
    facts = tuple(_gpu(index, device, name) for index, device in enumerate(gpus))
    gpu_paths = {(i, j): between(gpus[i], gpus[j]) for i, j in combinations(range(len(gpus)), 2)}
    if domains:
        gpu_paths |= {
            pair: f"NV{links}" for pair in gpu_paths if (links := _shared_links(pair, gpus, domains))
        }
    nic_paths = {
        (i, j): between(gpu, nic)
        for i, gpu in enumerate(gpus)
        for j, nic in enumerate(nic_devices)
        if nic is not None
    }
    kind, groups = (domains.kind, domains.domains) if domains else (None, None)
    unknown += domains.unknown if domains else []
    warnings += domains.warnings if domains else []
    return HostFacts(
        name,
        KIND,
        "imported",
        host,
        facts,
        nics,
        gpu_paths,
        nic_paths,
        kind,
        groups,
        tuple(unknown),
        tuple(warnings),
    )


def _gpu_devices(devices: list[Device], warnings: list[str]) -> list[Device]:
    """The GPUs in the order of their device numbers (dump) or PCI addresses (skeleton), which is the driver's."""
    used = [device for device in devices if device.gpu is not None]
    if not used:
        return sorted((device for device in devices if device.is_gpu_class), key=lambda device: device.pci)
    bare = [device.pci for device in devices if device.is_gpu_class and device.gpu is None]
    if bare:
        warnings.append(
            f"GPUs without a <gpu> entry are left out, the job did not use them: {', '.join(bare[:8])}"
        )
    numbers = [_number(device.gpu.get("dev"), -1) for device in used if device.gpu is not None]
    if sorted(numbers) != list(range(len(numbers))):
        told = ", ".join(map(str, sorted(numbers)))
        warnings.append(
            f"the file shows the GPUs a job used, with device numbers {told}; they are numbered 0 to {len(used) - 1} here, and the host may have more"
        )
    order = sorted(range(len(used)), key=lambda place: (numbers[place], used[place].pci))
    return [used[place] for place in order]


def _gpu(index: int, device: Device, name: str) -> GpuFact:
    links = sum(link.count for link in _links(device, name)) if device.gpu is not None else None
    chip = device.gpu.get("gcn", "") if device.gpu is not None else ""  # RCCL names the chip, NCCL nothing
    model = f"AMD {chip}" if re.fullmatch(r"gfx[0-9a-f]{3,6}", chip) else None
    return GpuFact(
        index,
        model,
        pci=device.pci,
        numa=device.numa,
        nvlinks=links,
        pcie_bytes_per_s=pcie_bytes_per_s(device),
    )


def _links(device: Device, name: str) -> list[_Link]:
    """NVLinks (or AMD's xGMI links) of one GPU."""
    if device.gpu is None:
        return []
    found = []
    for element in (*device.gpu.iter("nvlink"), *device.gpu.iter("xgmi")):
        count = _number(element.get("count"), 0)
        if not 1 <= count <= 36:
            raise BadInput(
                f"{name}: GPU {device.pci}: a link count of {element.get('count')!r}; a GPU has 1 to 36 links to one far end"
            )
        target, far = element.get("target", "").lower(), element.get("tclass", "").lower()
        found.append(_Link(target, count, to_switch=far.startswith("0x0680") or target.startswith("fffffff")))
    return found


def _domains(gpus: list[Device], name: str) -> Domains | None:
    """None where a direct link leads to no other GPU of the file: who its partner is would be a guess, but for two GPUs."""
    place = {device.pci: index for index, device in enumerate(gpus)}
    direct: dict[tuple[int, int], int] = {}
    to_switch, switches = [0] * len(gpus), [set[str]() for _ in gpus]
    for index, device in enumerate(gpus):
        for link in _links(device, name):
            if link.to_switch:
                to_switch[index] += link.count
                switches[index] |= set() if link.target.startswith("fffffff") else {link.target}
                continue
            peer = place.get(link.target, index)
            if peer == index and len(gpus) != 2:
                return None
            peer = 1 - index if peer == index else peer
            pair = min(index, peer), max(index, peer)
            direct[pair] = max(direct.get(pair, 0), link.count)
    return domains_from_links(direct, to_switch, [frozenset(ids) for ids in switches])


def _shared_links(pair: tuple[int, int], gpus: list[Device], domains: Domains) -> int:
    """Links that join a pair: direct ones, or through a switch the fewer of the two GPUs' own."""
    a, b = pair
    if not any(a in group and b in group for group in domains.domains):
        return 0
    if domains.kind == "switch":
        return min(domains.links[a] or 0, domains.links[b] or 0)
    counts = [
        link.count
        for link in (*_links(gpus[a], ""), *_links(gpus[b], ""))
        if link.target in {gpus[a].pci, gpus[b].pci}
    ]
    return max(counts, default=0)


def _nics(devices: list[Device], warnings: list[str]) -> tuple[tuple[NicFact, ...], list[Device | None]]:
    """The network interfaces, each once, and the PCI device of each (None: none is given). Without any <net>, the PCI functions of class 0x02."""
    nics: dict[tuple[str, str], tuple[NicFact, Device | None]] = {}
    for device in devices:
        for net in device.nets:
            key = net.get("name", "?"), net.get("guid", "")
            nic, before = nics.get(key, (_nic(net, device), device))
            nics[key] = (
                nic,
                before if before is not None and before.cpu == device.cpu else None,
            )  # repeated under every CPU: it has no place
    if not nics:
        bare = [device for device in devices if device.is_nic_class]
        return tuple(NicFact(device.pci, pci=device.pci, numa=device.numa) for device in bare), [*bare]
    left_out = [nic.name for nic, _ in nics.values() if nic.compute is False]
    if left_out:
        warnings.append(
            f"virtual and slow interfaces are not for expert traffic: {', '.join(left_out[:8])}{' ...' if len(left_out) > 8 else ''}"
        )
    return tuple(nic for nic, _ in nics.values()), [device for _, device in nics.values()]


def _nic(net: ET.Element, device: Device) -> NicFact:
    speed_mbps = _number(net.get("speed"), 0)
    direct = {"0": False, "1": True}.get(net.get("gdr", ""))
    name = net.get("name", "?")
    idle = direct is False and speed_mbps <= _SLOWEST_FABRIC_MBPS
    compute = False if idle or _VIRTUAL.fullmatch(name) else None
    rate = speed_mbps * 1e6 / 8 if speed_mbps > 0 else None
    guid = net.get("guid", "0x0")
    fact = NicFact(name, rate_bytes_per_s=rate, compute=compute, pci=device.pci or None, gpudirect=direct)
    return replace(
        fact,
        numa=device.numa if device.pci else None,
        guid=guid if re.fullmatch(r"0x[0-9a-f]{9,16}", guid) else None,
    )


def _number(text: str | None, default: int) -> int:
    match = re.fullmatch(r"-?[0-9]{1,12}", (text or "").strip())
    return int(match[0]) if match else default
