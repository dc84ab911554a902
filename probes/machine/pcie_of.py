"""The PCIe of one host as the planner's `Pcie`: links, sockets, and switches that several GPUs share."""

from collections.abc import Sequence

from planner.base import Evidence, Rate
from planner.topology import NvLink, Pcie, PcieSwitch
from probes.machine.gpu_table import RACK_MODELS, GpuLinks
from probes.machine.host import Host, Notes
from probes.machine.nvlink_domains import components


def pcie_of(host: Host, gpus: Sequence[GpuLinks], nvlink: NvLink, notes: Notes) -> Pcie:
    rates = [pcie_rate(host, index, model) for index, model in enumerate(gpus)]
    numa = [gpu.numa for gpu in host.gpus]
    known = sorted({node for node in numa if node is not None})
    if None in numa and known:
        notes.warnings.append(
            f"{host.title}: the NUMA node of some GPUs is not known; all GPUs are taken as on one socket"
        )
    sockets = tuple(0 if None in numa or node is None else known.index(node) for node in numa)
    return Pcie(tuple(rates), sockets, _switches(host, nvlink, rates, sockets))


def pcie_rate(host: Host, index: int, model: GpuLinks) -> Rate:
    """Of one GPU, one direction: as read, else by the data sheet of its model."""
    read = host.gpus[index].pcie_bytes_per_s
    if read:
        return Rate(read, host.source_of("gpu", index, "pcie_bytes_per_s"))
    if model.model in RACK_MODELS:
        why = "GPU to its Grace CPU over NVLink-C2C: 450 GB/s for the two GPUs of a superchip, halved"
        return Rate(model.pcie_bytes_per_s, Evidence("assumed", why))
    why = f"PCIe of the {model.source}; the slot may be slower"
    return Rate(model.pcie_bytes_per_s, Evidence("preset", why))


def _switches(
    host: Host, nvlink: NvLink, rates: Sequence[Rate], sockets: Sequence[int]
) -> tuple[PcieSwitch, ...]:
    """PCIe switches that several GPUs share and whose uplink their traffic crosses.

    Only where GPUs have PCIe between them.
    """
    if nvlink.kind == "switch":
        return ()
    short = [pair for pair, path in host.gpu_paths.items() if path in {"PIX", "PXB"}]
    near = [pair for pair in short if sockets[pair[0]] == sockets[pair[1]]]
    assumed = Evidence("assumed", "as wide as one GPU's link: one x16 uplink for each PCIe switch")
    return tuple(
        PcieSwitch(group, Rate(max(rates[gpu].bytes_per_s for gpu in group), assumed))
        for group in components(len(rates), near)
        if len(group) > 1
    )
