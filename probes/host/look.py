"""One host, probed live: GPUs through NVML, network cards, PCI paths and firmware names through sysfs."""

import hashlib
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.host.no_gpu import hidden_gpus, none_shown, nvml_refused
from probes.host.pci_paths import numa_node, pci_path, pcie_distance
from probes.host.rdma import read_rdma
from probes.host.sysfs_tree import Directory, text
from probes.nvml.ask import NVML_TIMEOUT_SECONDS, NvmlAnswers, NvmlUnusableError, ask_nvml
from probes.nvml.codes import VIRTUALIZATION
from probes.nvml.facts import facts_of


def probe_host(
    sysfs_root: Path = Path("/sys"), nvml_timeout_seconds: float = NVML_TIMEOUT_SECONDS
) -> HostFacts:
    """The host we run on. BadInput where there is no GPU that can be asked.

    `sysfs_root` is a sys folder beside proc and etc, or the folder above all three.
    """
    holds_sys = (sysfs_root / "sys").is_dir()
    base, sysfs = (sysfs_root, "sys") if holds_sys else (sysfs_root.parent, sysfs_root.name)
    tree = Directory(base)
    answers = _answers(tree, sysfs, nvml_timeout_seconds)
    facts, rdma = facts_of(answers), read_rdma(base if sysfs == "sys" else sysfs_root)
    gpus = tuple(
        replace(gpu, numa=numa_node(tree, sysfs, gpu.pci)) if gpu.numa is None and gpu.pci else gpu
        for gpu in facts.gpus
    )
    virtual = any(gpu.get("virtualization") in VIRTUALIZATION for gpu in answers.gpus)
    nic_paths, unplaced = _nic_paths(tree, sysfs, gpus, rdma.nics, virtual=virtual)
    return replace(
        facts,
        source=f"{facts.source}, {rdma.source}",
        kind="probe",
        host=text(tree, "proc/sys/kernel/hostname") or socket.gethostname(),
        machine=_machine(tree),
        platform=_platform(tree, sysfs),
        gpus=gpus,
        nics=rdma.nics,
        nic_paths=nic_paths,
        unknown=(*facts.unknown, *rdma.unknown, *unplaced),
        warnings=(*facts.warnings, *rdma.warnings, *hidden_gpus(tree, sysfs, len(gpus))),
    )


def _answers(tree: Directory, sysfs: str, timeout_seconds: float) -> NvmlAnswers:
    try:
        answers = ask_nvml(timeout_seconds)
    except NvmlUnusableError as fault:
        raise BadInput(nvml_refused(tree, sysfs, fault.code)) from fault
    if not answers.gpus:
        raise BadInput(none_shown(tree, sysfs))
    return answers


def _nic_paths(
    tree: Directory, sysfs: str, gpus: Sequence[GpuFact], nics: Sequence[NicFact], *, virtual: bool
) -> tuple[dict[tuple[int, int], str], tuple[str, ...]]:
    """Path of each GPU to each NIC by PCI bridges, else by NUMA nodes.

    A virtual machine's single root complex is no nearness.
    """
    paths: dict[tuple[int, int], str] = {}
    unplaced: set[str] = set()
    for gpu in gpus:
        own = pci_path(tree, sysfs, gpu.pci) if gpu.pci else None
        for index, nic in enumerate(nics):
            path = pcie_distance(own, nic.pci_path) if own and nic.pci_path else None
            if path is None or (virtual and path == "PHB"):
                path = _numa_distance(gpu.numa, nic.numa)
            if path:
                paths[gpu.index, index] = path
            else:
                unplaced.add(nic.name)
    listed = [nic.name for nic in nics if nic.name in unplaced]
    if not listed:
        return paths, ()
    which = f"{', '.join(listed)} {'are' if len(listed) > 1 else 'is'}"
    return paths, (f"how near {which} to some GPUs: neither PCI bridges nor NUMA nodes tell",)


def _numa_distance(one: int | None, other: int | None) -> str | None:
    if one is None or other is None:
        return None
    return "NODE" if one == other else "SYS"


def _platform(tree: Directory, sysfs: str) -> str | None:
    """Maker and product as the firmware names them."""
    told = [text(tree, f"{sysfs}/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    return " ".join(filter(None, told)) or None


def _machine(tree: Directory) -> str | None:
    """Of this boot of this kernel.

    Host names and machine ids are often alike in machines made from one image.
    """
    identity = text(tree, "proc/sys/kernel/random/boot_id") or text(tree, "etc/machine-id")
    return hashlib.sha256(f"moeplan {identity}".encode()).hexdigest()[:16] if identity else None
