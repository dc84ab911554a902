"""One host of merged facts to the planner's `Node`: GPU models, NVLink, PCIe and NICs, each rate with what it rests on.

Where a number that the plan needs is not known there is no node, and `Missing` says which number and the flag that gives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from planner.base import Evidence, Rate, weakest
from planner.topology import Island, Node, NvLink, PairLink, Pcie, PcieSwitch, gpu_model
from probes.machine.gpu_names import GpuLinks, links_of_gpu, named_gpu, payload_bytes_per_s
from probes.machine.merge_hosts import Host, Notes
from probes.machine.nic_use import nics_of_node
from probes.machine.nvlink_domains import Domains, components, domains_from_paths, links_of


class MissingFigureError(Exception):
    """A number without which there is no topology; the text says which, and how to give it."""


@dataclass(frozen=True)
class Stated:
    """What a person said on the command line about every host."""

    gpu: str | None
    nic_bytes_per_s: float | None


def known_links(host: Host, gpu: str | None = None) -> Domains | None:
    """The NVLink domains, where need be told apart (switch or direct) by the GPU model."""
    if (
        host.links is None
        or host.links.kind is not None
        or not any(links_of(path) for path in host.gpu_paths.values())
    ):
        return host.links
    read = {links_of_gpu(one.name) for one in host.gpus}
    model = next(iter(read)) if len(read) == 1 else None
    model = model or (named_gpu(gpu) if gpu else None)
    return domains_from_paths(len(host.gpus), host.gpu_paths, model.nvlinks if model else None)


def node_of(host: Host, stated: Stated, notes: Notes) -> Node:
    """The node. MissingFigureError where a needed number is not known; BadInput where the facts cannot be one machine."""
    sliced = next((gpu.index for gpu in host.gpus if any("MIG" in fault for fault in gpu.faults)), None)
    if sliced is not None:
        raise MissingFigureError(
            f"{host.title}: GPU {sliced} is cut into MIG slices, which cannot hold a share of a model; turn MIG off"
        )
    unready = next((fault for gpu in host.gpus for fault in gpu.faults if "fabric not ready" in fault), None)
    if unready is not None:
        raise MissingFigureError(f"{host.title}: {unready}; see to the fabric manager, then probe again")
    gpus = [_gpu_links(host, index, stated, notes) for index in range(len(host.gpus))]
    nvlink = _nvlink(host, known_links(host, stated.gpu), gpus)
    nics = nics_of_node(host, stated.nic_bytes_per_s, notes)
    if isinstance(nics, str):
        raise MissingFigureError(nics)
    _compare_links(host, nvlink, gpus, notes)
    models = tuple(gpu_model(links.model) for links in gpus)
    faults = [f"GPU {gpu.index}: {fault}" for gpu in host.gpus for fault in gpu.faults] + [
        fault for nic in host.nics for fault in nic.faults
    ]
    return Node(models, nvlink, _pcie(host, gpus, nvlink, notes), nics, host.name, tuple(faults))


def _compare_links(host: Host, nvlink: NvLink, gpus: Sequence[GpuLinks], notes: Notes) -> None:
    """Say where the sources show fewer NVLinks than the model has; more cannot be, so the model is another one."""
    shown: dict[tuple[int, GpuLinks], list[int]] = {}
    for gpu, model in enumerate(gpus):
        own = [links_of(path) for pair, path in host.gpu_paths.items() if gpu in pair and links_of(path)]
        links = max(own, default=0) if nvlink.kind == "switch" else sum(own)
        if links > model.nvlinks:
            raise MissingFigureError(
                f"{host.title}: GPU {gpu} shows {links} NVLinks, an {model.model} has {model.nvlinks}: it is another model; name it: --gpu"
            )
        if links and links != model.nvlinks:
            shown.setdefault((links, model), []).append(gpu)
    for (links, model), members in shown.items():
        which = f"GPU {', '.join(map(str, members))}: {links} NVLinks are shown of the {model.nvlinks} that the {model.model} has"
        notes.warnings.append(f"{host.title}: {which}: it is another model, or links are down or unused")


def _gpu_links(host: Host, index: int, stated: Stated, notes: Notes) -> GpuLinks:
    name = host.gpus[index].name
    read = links_of_gpu(name)
    named = named_gpu(stated.gpu) if stated.gpu else None
    if name and name.startswith("AMD "):
        raise MissingFigureError(
            f"{host.title}: GPU {index} is an {name}; the catalogue has NVIDIA's GPUs and NVLink alone: write a topology file"
        )
    if named and name and (read is None or read.model != named.model):
        planned = read or named
        both = f"{host.title}: GPU {index} is {name} by {host.source_of('gpu', index, 'name').source}, {stated.gpu} by --gpu"
        notes.warnings.append(f"{both}; planned as {planned.model}")
    found = read or named
    if found is None:
        told = f"is called {name!r}, which is not in our catalogue" if name else "is not named by any source"
        raise MissingFigureError(
            f"{host.title}: the model of GPU {index} {told}; name it, as in --gpu H100-SXM, or add 'nvidia-smi -L'"
        )
    return found


def _nvlink(host: Host, links: Domains | None, gpus: Sequence[GpuLinks]) -> NvLink:
    if links is None:
        if len(gpus) == 1 or not any(gpu.nvlinks for gpu in gpus):
            return NvLink()
        raise MissingFigureError(
            f"{host.title}: which GPUs NVLink joins is not known; add the output of 'nvidia-smi topo -m'"
        )
    largest = max(map(len, links.domains))
    if links.kind == "none" or (links.kind is None and largest == 1 and _all_pairs(host)):
        return NvLink()
    if links.kind == "switch":
        groups = [group for group in links.domains if len(group) > 1 or host.gpus[group[0]].fabric]
        islands = (
            Island(group, tuple(_port_rate(host, links, gpu, gpus[gpu]) for gpu in group)) for group in groups
        )
        return NvLink("switch", tuple(islands)) if groups else NvLink()
    if links.kind in {"mesh", "bridge"} or (links.kind is None and largest == 2 and _all_pairs(host)):
        inside = [
            pair
            for pair in combinations(range(len(gpus)), 2)
            if any(set(pair) <= set(group) for group in links.domains)
        ]
        bare = next((pair for pair in inside if pair not in host.gpu_paths), None)
        if bare:
            raise MissingFigureError(
                f"{host.title}: the link of GPUs {bare[0]} and {bare[1]} is not in any source; add the whole output of 'nvidia-smi topo -m'"
            )
        pairs = tuple(
            PairLink(pair, _pair_rate(host, pair, gpus[pair[0]]))
            for pair in inside
            if links_of(host.gpu_paths[pair])
        )
        return NvLink("bridge" if largest == 2 else "mesh", pairs=pairs)
    raise MissingFigureError(
        f"{host.title}: how NVLink joins the GPUs is not known; add the whole output of 'nvidia-smi topo -m', or name the GPU: --gpu"
    )


def _all_pairs(host: Host) -> bool:
    return all(pair in host.gpu_paths for pair in combinations(range(len(host.gpus)), 2))


def _link_rate(host: Host, gpu: int, model: GpuLinks) -> tuple[float, Evidence, str]:
    """Payload bytes/s of one NVLink, what it rests on, and the words for it."""
    read = host.gpus[gpu].nvlink_bytes_per_s
    if read:
        evidence = host.source_of("gpu", gpu, "nvlink_bytes_per_s")
        payload = payload_bytes_per_s(read)
        return payload, evidence, f"{payload / 1e9:g} GB/s of payload each ({read / 1e9:g} GB/s read)"
    if not model.nvlink_bytes_per_s:
        raise MissingFigureError(
            f"{host.title}: GPU {gpu} shows NVLinks, which the {model.model} does not have; name the right GPU: --gpu"
        )
    return (
        model.nvlink_bytes_per_s,
        Evidence("preset", model.source),
        f"{model.nvlink_bytes_per_s / 1e9:g} GB/s each, {model.source}",
    )


def _port_rate(host: Host, links: Domains, gpu: int, model: GpuLinks) -> Rate:
    rate, evidence, words = _link_rate(host, gpu, model)
    count, counted = links.links[gpu] or host.gpus[gpu].nvlinks, host.evidence["host", 0, "nvlink"]
    if not count:
        count, counted = model.nvlinks, Evidence("preset", model.source)
    return Rate(
        count * rate,
        Evidence(weakest((counted, evidence)).kind, f"{count} NVLinks ({counted.source}) of {words}"),
    )


def _pair_rate(host: Host, pair: tuple[int, int], model: GpuLinks) -> Rate:
    rate, evidence, words = _link_rate(host, pair[0], model)
    count, counted = links_of(host.gpu_paths[pair]), host.evidence["host", 0, "nvlink"]
    return Rate(
        count * rate,
        Evidence(weakest((counted, evidence)).kind, f"{count} NVLinks ({counted.source}) of {words}"),
    )


def _pcie(host: Host, gpus: Sequence[GpuLinks], nvlink: NvLink, notes: Notes) -> Pcie:
    rates = []
    for index, model in enumerate(gpus):
        read = host.gpus[index].pcie_bytes_per_s
        preset = Rate(
            model.pcie_bytes_per_s,
            Evidence("preset", f"PCIe x16 of the {model.source}; the slot may be slower"),
        )
        rates.append(Rate(read, host.source_of("gpu", index, "pcie_bytes_per_s")) if read else preset)
    numa = [gpu.numa for gpu in host.gpus]
    known = sorted({node for node in numa if node is not None})
    if None in numa and known:
        notes.warnings.append(
            f"{host.title}: the NUMA node of some GPUs is not known; all GPUs are taken as on one socket"
        )
    sockets = tuple(0 if None in numa or node is None else known.index(node) for node in numa)
    return Pcie(tuple(rates), sockets, _switches(host, nvlink, rates, sockets))


def _switches(
    host: Host, nvlink: NvLink, rates: Sequence[Rate], sockets: Sequence[int]
) -> tuple[PcieSwitch, ...]:
    """PCIe switches that several GPUs share and whose uplink their traffic crosses: only where GPUs have PCIe between them."""
    if nvlink.kind == "switch":
        return ()
    near = [
        pair
        for pair, path in host.gpu_paths.items()
        if path in {"PIX", "PXB"} and sockets[pair[0]] == sockets[pair[1]]
    ]
    groups = [group for group in components(len(rates), near) if len(group) > 1]
    why = "as wide as one GPU's link: one x16 uplink for each PCIe switch"
    return tuple(
        PcieSwitch(group, Rate(max(rates[gpu].bytes_per_s for gpu in group), Evidence("assumed", why)))
        for group in groups
    )
