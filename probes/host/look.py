"""One host, probed live: GPUs through NVML, network cards and PCI paths through sysfs, and what the firmware calls the machine."""

import hashlib
import re
import socket
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.host.pci_paths import numa_node, nvidia_gpus, pci_path, pcie_distance
from probes.host.rdma import read_rdma
from probes.host.sysfs_tree import Directory, text
from probes.nvml.ask import NVML_TIMEOUT_SECONDS, NvmlAnswers, NvmlUnusableError, ask_nvml
from probes.nvml.decode import VIRTUALIZATION, error_text
from probes.nvml.facts import facts_of

INSTEAD = (
    "run moeplan probe where the GPUs are, or give 'moeplan import' a paste of 'nvidia-smi topo -m' from there, "
    "or plan for a preset ('moeplan topology list')"
)  # fmt: skip
_NO_DRIVER, _NO_PERMISSION, _NO_LIBRARY, _MISMATCH = 9, 4, 12, 18


def probe_host(
    sysfs_root: Path = Path("/sys"), nvml_timeout_seconds: float = NVML_TIMEOUT_SECONDS
) -> HostFacts:
    """The host we run on. `sysfs_root` is a sys folder beside proc and etc, or the folder above all three. BadInput where there is no GPU that can be asked."""
    base, sysfs = (
        (sysfs_root, "sys") if (sysfs_root / "sys").is_dir() else (sysfs_root.parent, sysfs_root.name)
    )
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
        platform=" ".join(
            filter(
                None, (text(tree, f"{sysfs}/class/dmi/id/{name}") for name in ("sys_vendor", "product_name"))
            )
        )
        or None,
        gpus=gpus,
        nics=rdma.nics,
        nic_paths=nic_paths,
        unknown=(*facts.unknown, *rdma.unknown, *unplaced),
        warnings=(*facts.warnings, *rdma.warnings, *_hidden_gpus(tree, sysfs, len(gpus))),
    )


def _answers(tree: Directory, sysfs: str, timeout_seconds: float) -> NvmlAnswers:
    try:
        answers = ask_nvml(timeout_seconds)
    except NvmlUnusableError as fault:
        raise BadInput(_no_gpu(tree, sysfs, fault.code)) from fault
    if not answers.gpus:
        raise BadInput(
            f"the NVIDIA driver is loaded and shows no GPU ({_pci(tree, sysfs)}): a container without GPUs, or none fitted; {INSTEAD}"
        )
    return answers


def _no_gpu(tree: Directory, sysfs: str, code: int) -> str:
    """What was tried and what to do."""
    driver = text(tree, "proc/driver/nvidia/version")
    version = re.search(r"\b[0-9]{3}\.[0-9]{1,3}(\.[0-9]{1,3})?\b", driver or "")
    kernel = (
        f"kernel driver {version[0] if version else 'of unknown version'}"
        if driver
        else "no kernel driver: /proc/driver/nvidia is absent"
    )
    tried = f"{kernel}; {_pci(tree, sysfs)}"
    if code == _MISMATCH:
        return f"the NVML library and the kernel driver are of different versions ({tried}): reboot after a driver upgrade; restart a container that is older"
    if code == _NO_PERMISSION:
        return f"NVML gives no permission to ask the GPUs ({tried}): run as a user who may open /dev/nvidia*, or hand these devices to the container"
    if code == _NO_LIBRARY:
        found = (
            "libnvidia-ml.so.1 is not found; is the container started with the NVIDIA runtime?"
            if driver
            else "libnvidia-ml.so.1 is not found"
        )
        return f"no GPU that can be asked: {found} ({tried}); {INSTEAD}"
    if code == _NO_DRIVER:
        return f"no GPU that can be asked: NVML is installed and the driver is not loaded ({tried}); load it (modprobe nvidia), or {INSTEAD}"
    return f"no GPU that can be asked: NVML says {error_text(code)} (code {code}; {tried}); look at dmesg and nvidia-smi, or {INSTEAD}"


def _pci(tree: Directory, sysfs: str) -> str:
    return f"PCI lists {len(nvidia_gpus(tree, sysfs))} NVIDIA GPUs"


def _hidden_gpus(tree: Directory, sysfs: str, shown: int) -> tuple[str, ...]:
    """Fewer GPUs than the kernel lists must not pass in silence."""
    listed = len(nvidia_gpus(tree, sysfs))
    if listed <= shown:
        return ()
    why = "this container, cgroup or job sees a part of them, some have no driver, or one has failed"
    return (f"PCI lists {listed} NVIDIA GPUs and NVML shows {shown}: {why}; the plan would use {shown}",)


def _nic_paths(
    tree: Directory, sysfs: str, gpus: tuple[GpuFact, ...], nics: tuple[NicFact, ...], *, virtual: bool
) -> tuple[dict[tuple[int, int], str], tuple[str, ...]]:
    """Path of each GPU to each NIC by PCI bridges, else by NUMA nodes. A virtual machine's single root complex is no nearness."""
    paths: dict[tuple[int, int], str] = {}
    unplaced: set[str] = set()
    for gpu in gpus:
        own = pci_path(tree, sysfs, gpu.pci) if gpu.pci else None
        for index, nic in enumerate(nics):
            path = pcie_distance(own, nic.pci_path) if own and nic.pci_path else None
            if path is None or (virtual and path == "PHB"):
                path = (
                    None
                    if gpu.numa is None or nic.numa is None
                    else "NODE"
                    if gpu.numa == nic.numa
                    else "SYS"
                )
            if path:
                paths[gpu.index, index] = path
            else:
                unplaced.add(nic.name)
    listed = [nic.name for nic in nics if nic.name in unplaced]
    return paths, (
        f"how near {', '.join(listed)} {'are' if len(listed) > 1 else 'is'} to some GPUs: neither PCI bridges nor NUMA nodes tell",
    ) if listed else ()


def _machine(tree: Directory) -> str | None:
    """Of this boot of this kernel: host names and machine ids are often alike in machines made from one image."""
    identity = text(tree, "proc/sys/kernel/random/boot_id") or text(tree, "etc/machine-id")
    return hashlib.sha256(f"moeplan {identity}".encode()).hexdigest()[:16] if identity else None
