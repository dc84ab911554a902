"""NCCL's topology XML, made up piece by piece, and what is read from it."""

from probes.base.facts import HostFacts
from probes.importers import nccl_xml


def gpu(bus: str, dev: int, links: str = "", speed: str = "32.0 GT/s PCIe") -> str:
    inside = f'<gpu dev="{dev}" sm="90" rank="{dev}" gdr="1">{links}</gpu>'
    return f'<pci busid="{bus}" class="0x030200" link_speed="{speed}" link_width="16">{inside}</pci>'


def link(target: str, count: int, far: str = "0x068000") -> str:
    return f'<nvlink target="{target}" count="{count}" tclass="{far}"/>'


def net(name: str, bus: str = "", speed: int = 400000, guid: str = "0x506b4b0300cc1234", gdr: int = 1) -> str:
    told = f'name="{name}" dev="0" speed="{speed}" port="1" guid="{guid}" maxconn="1024" gdr="{gdr}"'
    inner = f"<nic><net {told}/></nic>"
    return (
        f'<pci busid="{bus}" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">{inner}</pci>'
        if bus
        else inner
    )


def bridge(bus: str, inside: str, vendor: str = "0x15b3") -> str:
    ids = f'busid="{bus}" class="0x060400" vendor="{vendor}" device="0xc030"'
    return f'<pci {ids} link_speed="32.0 GT/s PCIe" link_width="16">{inside}</pci>'


def system(*cpus: str, host: str = "") -> str:
    marks = f'host_hash="{host}" ' if host else ""
    return (
        '<system version="1">'
        + "".join(f'<cpu {marks}numaid="{n}" arch="x86_64">{inside}</cpu>' for n, inside in enumerate(cpus))
        + "</system>"
    )


def read(text: str) -> HostFacts:
    (host,) = nccl_xml.read(text.encode(), "dump.xml")
    return host


SWITCHED = link("0000:1a:00.0", 9) + link("0000:1b:00.0", 9)
