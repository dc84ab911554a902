"""What to say, and what to do, where no GPU of this host can be asked."""

import re

from probes.host.pci_paths import nvidia_gpus
from probes.host.sysfs_tree import Tree, text
from probes.nvml.codes import error_text

INSTEAD = (
    "run moeplan probe where the GPUs are, or give 'moeplan import' "
    "a paste of 'nvidia-smi topo -m' from there, or plan for a preset ('moeplan topology list')"
)
_NO_DRIVER, _NO_PERMISSION, _NO_LIBRARY, _MISMATCH = 9, 4, 12, 18


def nvml_refused(tree: Tree, sysfs: str, code: int) -> str:
    """NVML's `code`, what was tried and what to do."""
    driver = text(tree, "proc/driver/nvidia/version")
    tried = f"{_kernel(driver)}; {_pci(tree, sysfs)}"
    if code == _MISMATCH:
        return (
            f"the NVML library and the kernel driver are of different versions ({tried}): "
            "reboot after a driver upgrade; restart a container that is older"
        )
    if code == _NO_PERMISSION:
        return (
            f"NVML gives no permission to ask the GPUs ({tried}): "
            "run as a user who may open /dev/nvidia*, or hand these devices to the container"
        )
    return f"no GPU that can be asked: {_why(code, driver, tried)}"


def none_shown(tree: Tree, sysfs: str) -> str:
    shows = f"the NVIDIA driver is loaded and shows no GPU ({_pci(tree, sysfs)})"
    return f"{shows}: a container without GPUs, or none fitted; {INSTEAD}"


def hidden_gpus(tree: Tree, sysfs: str, shown: int) -> tuple[str, ...]:
    """Fewer GPUs than the kernel lists must not pass in silence."""
    listed = len(nvidia_gpus(tree, sysfs))
    if listed <= shown:
        return ()
    why = "this container, cgroup or job sees a part of them, some have no driver, or one has failed"
    return (f"PCI lists {listed} NVIDIA GPUs and NVML shows {shown}: {why}; the plan would use {shown}",)


def _kernel(driver: str | None) -> str:
    if not driver:
        return "no kernel driver: /proc/driver/nvidia is absent"
    version = re.search(r"\b[0-9]{3}\.[0-9]{1,3}(\.[0-9]{1,3})?\b", driver)
    return f"kernel driver {version[0] if version else 'of unknown version'}"


def _why(code: int, driver: str | None, tried: str) -> str:
    if code == _NO_LIBRARY:
        runtime = "; is the container started with the NVIDIA runtime?" if driver else ""
        return f"libnvidia-ml.so.1 is not found{runtime} ({tried}); {INSTEAD}"
    if code == _NO_DRIVER:
        loaded = "NVML is installed and the driver is not loaded"
        return f"{loaded} ({tried}); load it (modprobe nvidia), or {INSTEAD}"
    said = f"NVML says {error_text(code)} (code {code}; {tried})"
    return f"{said}; look at dmesg and nvidia-smi, or {INSTEAD}"


def _pci(tree: Tree, sysfs: str) -> str:
    return f"PCI lists {len(nvidia_gpus(tree, sysfs))} NVIDIA GPUs"
