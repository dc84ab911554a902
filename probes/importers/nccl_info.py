"""What NCCL logs of the machine it found (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH): one host or many.

    node1:4242:4260 [0] NCCL INFO === System : maxBw 370.8 totalBw 370.8 ===
    node1:4242:4260 [0] NCCL INFO CPU/0 (1/1/2)
    node1:4242:4260 [0] NCCL INFO + PCI[48.0] - GPU/1B000 (0)
    node1:4242:4260 [0] NCCL INFO               + NVL[370.8] - NVS/0
    node1:4242:4260 [0] NCCL INFO ==========================================
    node1:4242:4260 [0] NCCL INFO GPU/1B000 :GPU/1B000 (0/5000.0/LOC) NET/0 (3/48.0/PIX) ...

Every rank logs its own view of its host; of each host the one with most GPUs is read.
"""

import re
from collections.abc import Sequence
from itertools import combinations

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, LARGEST_NODE_NICS
from probes.base.facts import GpuFact, HostFacts, NicFact, noted
from probes.importers.nccl_info_view import View, views_of
from probes.machine.nvlink_domains import Domains, domains_from_links
from probes.machine.nvlink_labels import MOST_LINKS

KIND = "nccl-info"
LARGEST_TEXT = 32 << 20
_SYSTEM = b"NCCL INFO === System"
_PATHS = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "P2C": "PHB", "NODE": "NODE", "SYS": "SYS"}
# bandwidth that NCCL counts with for one NVLink, GB/s: Hopper, Blackwell, Volta and Ampere, Ampere's cards
_OF_ONE_LINK = (20.6, 40.1, 20.0, 12.0)


def recognise(content: bytes, name: str) -> bool:
    """Whether some rank logged what it found, or a log that is of no benchmark either lacks that."""
    del name
    head = content[:LARGEST_TEXT]
    return _SYSTEM in head or (b" NCCL INFO " in head and b"busbw" not in head)


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """One value for each host. BadInput where no rank's view is whole."""
    if _SYSTEM not in content[:LARGEST_TEXT]:
        asked = (
            "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH, or NCCL_TOPO_DUMP_FILE=topo.xml"
        )
        raise BadInput(f"{name}: an NCCL log without the machine that its ranks found; {asked}")
    views = views_of(content[:LARGEST_TEXT].decode("utf-8", errors="replace"))
    whole = [view for view in views if view.ended and view.gpus]
    if not whole:
        raise BadInput(f"{name}: no rank's view of its machine is whole; give the log from '=== System' on")
    hosts = dict.fromkeys(view.host for view in whole)
    best = [
        max((view for view in whole if view.host == host), key=lambda view: len(view.gpus)) for host in hosts
    ]
    lost = sorted({view.host for view in views} - set(hosts))
    facts = [_host(view, name) for view in best]
    if lost:
        some = f"the views of {', '.join(lost[:8])} are cut: those hosts are missing"
        facts[0] = noted(facts[0], [some])
    return tuple(facts)


def _host(view: View, name: str) -> HostFacts:
    gpus, nets = sorted(view.gpus, key=_address), sorted(view.nets, key=_number)
    if len(gpus) > LARGEST_NODE_GPUS or len(nets) > LARGEST_NODE_NICS:
        raise BadInput(
            f"{name}: {view.host}: {len(gpus)} GPUs and {len(nets)} NICs on one host; no host has as many"
        )
    hidden = sorted({node for pair in view.paths for node in pair if node.startswith("GPU")} - set(gpus))
    if hidden:
        view.unknown.append(
            f"paths lead to {', '.join(hidden[:8])}, whose place is not in the log: it is damaged"
        )
    domains = _domains(view, gpus)
    unknown = [*(domains.unknown if domains else ()), *view.unknown]
    joined = {gpu: group for group in (domains.domains if domains else ()) for gpu in group}
    links = domains.links if domains else (None,) * len(gpus)
    paths = {}
    for a, b in combinations(range(len(gpus)), 2):
        shown = _PATHS.get(view.paths.get((gpus[a], gpus[b]), ""))
        if domains and b in joined[a]:
            shown = _label(view, gpus, domains, (a, b))
        if shown:
            paths[a, b] = shown
    return HostFacts(
        name,
        KIND,
        "imported",
        view.host,
        gpus=tuple(
            GpuFact(at, pci=_address(gpu), numa=view.numa.get(gpu), nvlinks=links[at])
            for at, gpu in enumerate(gpus)
        ),
        nics=tuple(_nic(view, net) for net in nets),
        gpu_paths=paths,
        nic_paths={
            (a, b): _PATHS.get(view.paths[gpu, net], "SYS")
            for a, gpu in enumerate(gpus)
            for b, net in enumerate(nets)
            if (gpu, net) in view.paths
        },
        nvlink_kind=domains.kind if domains else None,
        domains=domains.domains if domains else None,
        unknown=tuple(unknown),
        warnings=domains.warnings if domains else (),
    )


def _domains(view: View, gpus: Sequence[str]) -> Domains | None:
    """None where a rate is of no whole number of links: which GPUs are joined is known, how is not."""
    place = {gpu: at for at, gpu in enumerate(gpus)}
    direct: dict[tuple[int, int], int] = {}
    to_switch, switches = [0] * len(gpus), [frozenset[str]()] * len(gpus)
    for (gpu, far), rate in view.nvlinks.items():
        count = _links(rate)
        if count is None or (not far.startswith("NVS") and far not in place):
            view.unknown.append(
                f"NVLinks of {gpu} to {far} at {rate:g} GB/s are of no generation that we know"
            )
            return None
        if far.startswith("NVS"):
            to_switch[place[gpu]] += count
            switches[place[gpu]] |= {far}
        else:
            a, b = sorted((place[gpu], place[far]))
            direct[a, b] = count
    return domains_from_links(direct, to_switch, switches)


def _label(view: View, gpus: Sequence[str], domains: Domains, pair: tuple[int, int]) -> str | None:
    a, b = pair
    if domains.kind == "switch":
        return f"NV{min(domains.links[a] or 0, domains.links[b] or 0)}"
    rate = view.nvlinks.get((gpus[a], gpus[b]), view.nvlinks.get((gpus[b], gpus[a])))
    return f"NV{_links(rate)}" if rate else _PATHS.get(view.paths.get((gpus[a], gpus[b]), ""), "SYS")


def _links(rate: float) -> int | None:
    """How many NVLinks carry so many GB/s as NCCL counts them.

    >>> _links(370.8), _links(240.0), _links(721.8), _links(33.0)
    (18, 12, 18, None)
    """
    for one in _OF_ONE_LINK:
        count = round(rate / one)
        if 1 <= count <= MOST_LINKS and abs(count * one - rate) <= 0.0015 * rate + 0.05:
            return count
    return None


def _nic(view: View, net: str) -> NicFact:
    number = _number(net)
    name = view.devices.get(number, f"NIC{number}")
    rate = view.rates.get(net)
    pci = view.cards.get(net)
    layer = view.layers.get(number)
    return NicFact(
        name,
        rate_bytes_per_s=rate * 1e9 if rate else None,
        link_layer=layer,
        pci=_address(pci) if pci else None,
        numa=view.numa.get(net),
    )


def _address(node: str) -> str:
    """
    >>> _address("GPU/1B000"), _address("GPU/0-806000")
    ('0000:1b:00.0', '0008:06:00.0')
    """
    number = int(node.rpartition("/")[2].rpartition("-")[2], 16)
    return f"{number >> 20:04x}:{number >> 12 & 255:02x}:{number >> 4 & 255:02x}.{number & 15:x}"


def _number(net: str) -> int:
    match = re.search(r"(\d{1,6})$", net)
    return int(match[1]) if match else 0
