"""One host of merged facts to the planner's `Node`, each rate with what it rests on.

A node is made of GPU models, NVLink, PCIe and NICs. Where a number that the plan needs is not known there is
no node, and `MissingFigureError` says which number and the flag that gives it.
"""

from collections.abc import Sequence

from planner.topology import Node, NvLink, gpu_model
from probes.machine.gpu_table import GpuLinks
from probes.machine.hints import Hints
from probes.machine.host import Host, Notes
from probes.machine.nic_use import nics_of_node
from probes.machine.nvlink_domains import links_of
from probes.machine.nvlink_of import known_links, nvlink_of
from probes.machine.pcie_of import pcie_of
from probes.machine.stated import MissingFigureError


def node_of(host: Host, hints: Hints, notes: Notes) -> Node:
    """The node.

    MissingFigureError where a needed number is not known; BadInput where the facts cannot be one machine.
    """
    _check_ready(host)
    gpus = [_gpu_links(host, index, hints, notes) for index in range(len(host.gpus))]
    nvlink = nvlink_of(host, known_links(host, hints), gpus)
    nics = nics_of_node(host, gpus, hints, notes)
    if isinstance(nics, str):
        raise MissingFigureError(nics)
    _compare_links(host, nvlink, gpus, notes)
    models = tuple(links.figures or gpu_model(links.model) for links in gpus)
    faults = [f"GPU {gpu.index}: {fault}" for gpu in host.gpus for fault in gpu.faults]
    faults += [fault for nic in host.nics for fault in nic.faults]
    return Node(models, nvlink, pcie_of(host, gpus, nvlink, notes), nics, host.name, tuple(faults))


def _check_ready(host: Host) -> None:
    sliced = next((gpu.index for gpu in host.gpus if any("MIG" in fault for fault in gpu.faults)), None)
    if sliced is not None:
        raise MissingFigureError(
            f"{host.title}: GPU {sliced} is cut into MIG slices, which cannot hold a share of a model; "
            "turn MIG off"
        )
    unready = next((fault for gpu in host.gpus for fault in gpu.faults if "fabric not ready" in fault), None)
    if unready is not None:
        raise MissingFigureError(f"{host.title}: {unready}; see to the fabric manager, then probe again")


def _compare_links(host: Host, nvlink: NvLink, gpus: Sequence[GpuLinks], notes: Notes) -> None:
    """Say where the sources show fewer NVLinks than the model has.

    More cannot be, so the model is another one.
    """
    shown: dict[tuple[int, GpuLinks], list[int]] = {}
    for gpu, model in enumerate(gpus):
        own = [links_of(path) for pair, path in host.gpu_paths.items() if gpu in pair and links_of(path)]
        links = max(own, default=0) if nvlink.kind == "switch" else sum(own)
        if links > model.nvlinks:
            raise MissingFigureError(
                f"{host.title}: GPU {gpu} shows {links} NVLinks, an {model.model} has {model.nvlinks}: "
                "it is another model; name it: --gpu"
            )
        shows = any(gpu in pair for pair in host.gpu_paths)
        if links != model.nvlinks and (links or (shows and not model.optional)):
            shown.setdefault((links, model), []).append(gpu)
    for (links, model), members in shown.items():
        which = f"{links} NVLinks are shown of the {model.nvlinks} that the {model.model} has"
        why = "it is another model, or links are down or unused"
        notes.warnings.append(f"{host.title}: GPU {', '.join(map(str, members))}: {which}: {why}")


def _gpu_links(host: Host, index: int, hints: Hints, notes: Notes) -> GpuLinks:
    name, gpu = host.gpus[index].name, f"GPU {index}"
    read, named = hints.links_of(name), hints.stated_gpu
    if name and name.startswith("AMD "):
        known = "the catalogue has NVIDIA's GPUs and NVLink alone"
        raise MissingFigureError(f"{host.title}: {gpu} is an {name}; {known}: write a topology file")
    if named and name and (read is None or read.model != named.model):
        told = host.source_of("gpu", index, "name").source
        both = f"{gpu} is {name} by {told}, {hints.gpu or named.model} by --gpu"
        notes.warnings.append(f"{host.title}: {both}; planned as {(read or named).model}")
    found = read or named
    if found is None:
        told = f"is called {name!r}, which is not in our catalogue" if name else "is not named by any source"
        known = "describe it: --gpu-model FILE" if name else "add 'nvidia-smi -L'"
        remedy = f"name it, as in --gpu H100-SXM, or {known}"
        raise MissingFigureError(f"{host.title}: the model of {gpu} {told}; {remedy}")
    return found
