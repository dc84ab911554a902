"""What NVML's numbers mean. Pure: raw answers of `probes.nvml.worker` in, facts out. Codes and bit fields are those of nvidia-ml-py 13.615 (pynvml.py)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from probes.base.facts import GpuFact
from probes.machine.nvlink_domains import fabric_faults, fabric_key

Raw = Mapping[str, Any]

ERRORS = {
    -1: "the answer is not text", 1: "NVML is not initialised", 2: "invalid argument", 3: "not supported", 4: "no permission", 6: "not found",
    7: "insufficient size", 9: "the driver is not loaded", 10: "timeout", 12: "libnvidia-ml.so.1 is not found", 13: "not in this driver, which is too old",
    14: "the GPU's inforom is corrupted", 15: "the GPU is lost: it fell off the bus or is not answering", 16: "the GPU needs a reset",
    17: "the operating system refused", 18: "the NVML library and the kernel driver are of different versions", 19: "in use", 20: "out of memory",
    21: "no data", 25: "not in this driver's version of the call", 27: "not ready", 28: "GPU not found", 29: "invalid state", 999: "unknown error",
}  # fmt: skip
ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
P2P = {
    0: "OK", 1: "the chipset does not support it", 2: "the GPU does not support it", 3: "the topology does not allow it",
    4: "disabled by a registry key", 5: "not supported", 6: "unknown",
}  # fmt: skip
VIRTUALIZATION = {1: "GPUs passed through to a virtual machine", 2: "virtual GPUs in a guest"}
FABRIC_STATES = {0: "NOT_SUPPORTED", 1: "NOT_STARTED", 2: "IN_PROGRESS", 3: "COMPLETED"}
LINK_VERSIONS = {
    1: "1.0",
    2: "2.0",
    3: "2.2",
    4: "3.0",
    5: "3.1",
    6: "4.0",
    7: "5.0",
    8: "6.0",
}  # NVML gives the number on the left
GB_PER_S_OF_LANE = {
    1: 0.25,
    2: 0.5,
    3: 1.0,
    4: 2.0,
    5: 4.0,
    6: 8.0,
}  # PCIe generation: line rate of a lane, per direction
RACK_GPU = re.compile(r"\bGB[23]00\b")  # these always sit in an NVLink fabric that spans trays
BANDWIDTH_MODES = {1: "OFF", 2: "MIN", 3: "HALF", 4: "3QUARTER"}  # 0 is FULL


@dataclass(frozen=True)
class FabricState:
    """`key` is 'UUID.CLIQUE' of a fabric that may span hosts. `not_ready` says why a GPU that should be in one is not; then no domain can be told."""

    key: str | None = None
    not_ready: str | None = None
    faults: tuple[str, ...] = ()


def error_text(code: int) -> str:
    return ERRORS.get(code, f"NVML error {code}")


def decode_fabric(fabric: Raw | None, name: str | None) -> FabricState:
    """The rules of `nvlink_domains.fabric_key`; a rack-scale GPU without any fabric state is not ready either: alone it would pass for a 4-GPU machine."""
    if fabric is None or fabric["state"] == 0:
        return (
            FabricState(not_ready="NVLink fabric not ready: state NOT_SUPPORTED")
            if RACK_GPU.search(name or "")
            else FabricState()
        )
    state, status = fabric["state"], fabric["status"]
    key, why_not = fabric_key(bytes.fromhex(fabric["uuid"]), fabric["clique"], state, status)
    if why_not:
        failed = f", its registration failed ({error_text(status)})" if state == 3 else ""
        return FabricState(
            not_ready=f"NVLink fabric not ready: state {FABRIC_STATES.get(state, state)}{failed}"
        )
    return FabricState(key, None, decode_health(fabric.get("health", 0), fabric.get("summary", 0)))


def decode_health(mask: int, summary: int = 0) -> tuple[str, ...]:
    """What is wrong, by the fields of the mask: two bits each, where 1 is true and 2 is false, so 0xaa is healthy. The summary speaks where the fields do not.

    >>> decode_health(0xAA), decode_health(0xA9)
    ((), ('NVLink bandwidth is degraded',))
    """
    faults = [*fabric_faults(mask)]
    faults += ["no partition of the NVLink fabric is assigned"] if mask >> 12 & 3 == 2 else []
    faults += ["the NVLink fabric manager is not connected"] if mask >> 14 & 3 == 2 else []
    return tuple(faults) or {
        2: ("NVLink fabric health is summed up as unhealthy",),
        3: ("NVLink fabric health is summed up as limited capacity",),
    }.get(summary, ())


def active_links(gpu: Raw) -> list[Raw]:
    """The links that carry peer traffic. A sleeping link (field state 2) wakes when it is used."""
    return [
        link
        for link in gpu.get("links", ())
        if link["state"] == 1 and link.get("p2p") != 0 and link.get("field_state") not in (0, 3)
    ]


def links_untold(gpu: Raw) -> bool:
    """Whether not one NVLink could be asked though there seem to be some: that is not a GPU without NVLink."""
    return "links" in gpu and not gpu["links"] and any(name.startswith("NVLink ") for name in gpu["errors"])


def leads_to_switch(link: Raw) -> bool:
    """Far ends that NVML does not name are switches: so virtual machines, newer switches and older drivers show them, and so NCCL reads it."""
    return link.get("remote_type") in (None, 2, 255)


def switch_id(link: Raw) -> str | None:
    """The switch's PCI address; None where it is empty or the 'ffff' that stands for a far end that cannot be read."""
    remote = link.get("remote")
    return None if remote is None or remote.startswith("ffff") or remote == "0000:00:00.0" else str(remote)


def decode_gpu(gpu: Raw) -> GpuFact:
    """One GPU by itself; what needs its siblings (domains, links that it lacks) is in `probes.nvml.facts`."""
    index, errors = gpu["index"], gpu["errors"]
    lost = (
        [gpu["sick"]]
        if "sick" in gpu
        else [error_text(code) for code in errors.values() if code in (4, 15, 16)]
    )
    if "links" not in gpu:
        why = lost or [error_text(code) for code in errors.values()]
        return GpuFact(
            index,
            name=gpu.get("name"),
            uuid=gpu.get("uuid"),
            pci=gpu.get("pci"),
            memory_bytes=gpu.get("memory"),
            faults=(why[0],),
        )
    fabric = decode_fabric(gpu.get("fabric"), gpu.get("name"))
    active = active_links(gpu)
    speeds = sorted({link["mb_per_s"] for link in active if link.get("mb_per_s")})
    now, full = (_pcie_bytes_per_s(gpu, width) for width in ("pcie_width", "pcie_max_width"))
    faults = [*lost, *filter(None, [fabric.not_ready]), *fabric.faults, *_link_faults(gpu, speeds)]
    if now and full and now < full:
        faults.append(f"PCIe runs x{gpu['pcie_width']}, card and slot allow x{gpu['pcie_max_width']}")
    if gpu.get("mig"):
        faults.append(
            "MIG is on: it is cut into slices that have no peer access; turn MIG off to plan with the whole GPU"
        )
    if gpu.get("bandwidth_mode"):
        faults.append(
            f"NVLink bandwidth is set to {BANDWIDTH_MODES.get(gpu['bandwidth_mode'], gpu['bandwidth_mode'])} by policy"
        )
    return GpuFact(
        index, name=gpu.get("name"), uuid=gpu.get("uuid"), pci=gpu.get("pci"), memory_bytes=gpu.get("memory"),
        numa=gpu["numa"][0] if len(gpu.get("numa", ())) == 1 else None,
        nvlinks=None if links_untold(gpu) else len(active),
        nvlink_bytes_per_s=speeds[0] * 1e6 if speeds else None,
        nvlink_version=LINK_VERSIONS.get(min((link["version"] for link in active if "version" in link), default=0)),
        fabric=fabric.key, pcie_bytes_per_s=now, pcie_full_bytes_per_s=full, faults=tuple(faults),
    )  # fmt: skip


def _pcie_bytes_per_s(gpu: Raw, width: str) -> float | None:
    """At the highest generation that card and slot allow: the current one drops while a GPU is idle, the width does not."""
    rate = GB_PER_S_OF_LANE.get(gpu.get("pcie_max_generation", 0))
    return rate * 1e9 * gpu[width] if rate and gpu.get(width) else None


def _link_faults(gpu: Raw, speeds: list[int]) -> list[str]:
    up = [link for link in gpu["links"] if link["state"] == 1]
    failed = {
        name.removeprefix("NVLink "): code
        for name, code in gpu["errors"].items()
        if name.startswith("NVLink ") and code != 13
    }
    groups = [
        *(
            (error_text(code), [name for name in failed if failed[name] == code])
            for code in sorted(set(failed.values()))
        ),
        (
            "up, but its traffic is disabled",
            [str(link["link"]) for link in up if link.get("field_state") == 3],
        ),
        ("up, but not for traffic between GPUs", [str(link["link"]) for link in up if link.get("p2p") == 0]),
    ]
    faults = [f"NVLink {', '.join(numbers)}: {text}" for text, numbers in groups if numbers]
    if len(speeds) > 1:
        faults.append(
            f"its NVLinks run at different speeds: {', '.join(map(str, speeds))} MB/s; the lowest is taken for all"
        )
    return faults
