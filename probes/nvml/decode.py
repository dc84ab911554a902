"""What NVML's answers mean. Pure: raw answers of `probes.nvml.worker` in, facts out.

Bit fields are those of nvidia-ml-py 13.615 (pynvml.py).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from probes.base.facts import GpuFact
from probes.machine.nvlink_fabric import fabric_faults, fabric_key
from probes.nvml.codes import (
    BANDWIDTH_MODES,
    FABRIC_STATES,
    GB_PER_S_OF_LANE,
    LINK_VERSIONS,
    LOST,
    TOO_OLD,
    Raw,
    error_text,
)

RACK_GPU = re.compile(r"\bGB[23]00\b")  # these always sit in an NVLink fabric that spans trays


@dataclass(frozen=True)
class FabricState:
    """`key` is 'UUID.CLIQUE' of a fabric that may span hosts.

    `not_ready` says why a GPU that should be in one is not; then no domain can be told.
    """

    key: str | None = None
    not_ready: str | None = None
    faults: tuple[str, ...] = ()


def decode_fabric(fabric: Raw | None, name: str | None) -> FabricState:
    """The rules of `nvlink_domains.fabric_key`.

    A rack-scale GPU without any fabric state is not ready either: alone it would pass for a 4-GPU machine.
    """
    if fabric is None or fabric["state"] == 0:
        rack = RACK_GPU.search(name or "")
        return FabricState(not_ready="NVLink fabric not ready: state NOT_SUPPORTED" if rack else None)
    state, status = fabric["state"], fabric["status"]
    key, why_not = fabric_key(bytes.fromhex(fabric["uuid"]), fabric["clique"], state, status)
    if why_not:
        failed = f", its registration failed ({error_text(status)})" if state == 3 else ""
        told = f"state {FABRIC_STATES.get(state, state)}{failed}"
        return FabricState(not_ready=f"NVLink fabric not ready: {told}")
    return FabricState(key, None, decode_health(fabric.get("health", 0), fabric.get("summary", 0)))


def decode_health(mask: int, summary: int = 0) -> tuple[str, ...]:
    """What is wrong, by the fields of the mask: two bits each, 1 is true and 2 false, so 0xaa is healthy.

    The summary speaks where the fields do not.

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
    """Whether not one NVLink could be asked though there seem to be some: not the same as none."""
    return "links" in gpu and not gpu["links"] and any(name.startswith("NVLink ") for name in gpu["errors"])


def leads_to_switch(link: Raw) -> bool:
    """Far ends that NVML does not name are switches.

    So virtual machines, newer switches and older drivers show them, and so NCCL reads it.
    """
    return link.get("remote_type") in (None, 2, 255)


def switch_id(link: Raw) -> str | None:
    """The switch's PCI address; None where it is empty or the 'ffff' of a far end that cannot be read."""
    remote = link.get("remote")
    return None if remote is None or remote.startswith("ffff") or remote == "0000:00:00.0" else str(remote)


def decode_gpu(gpu: Raw) -> GpuFact:
    """One GPU by itself; what needs its siblings (domains, links that it lacks) is in `probes.nvml.facts`."""
    errors = gpu["errors"].values()
    lost = [gpu["sick"]] if "sick" in gpu else [error_text(code) for code in errors if code in LOST]
    fact = GpuFact(
        gpu["index"],
        name=gpu.get("name"),
        uuid=gpu.get("uuid"),
        pci=gpu.get("pci"),
        memory_bytes=gpu.get("memory"),
    )
    if "links" not in gpu:
        why = lost or [error_text(code) for code in errors]
        return replace(fact, faults=(why[0],))
    fabric = decode_fabric(gpu.get("fabric"), gpu.get("name"))
    not_ready = (fabric.not_ready,) if fabric.not_ready else ()
    fact = replace(
        fact,
        numa=gpu["numa"][0] if len(gpu.get("numa", ())) == 1 else None,
        fabric=fabric.key,
        pcie_bytes_per_s=_pcie_bytes_per_s(gpu, "pcie_width"),
        pcie_full_bytes_per_s=_pcie_bytes_per_s(gpu, "pcie_max_width"),
    )
    speeds = sorted({link["mb_per_s"] for link in active_links(gpu) if link.get("mb_per_s")})
    faults = (*lost, *not_ready, *fabric.faults, *_link_faults(gpu, speeds), *_settings_faults(gpu, fact))
    return replace(_with_links(fact, gpu, speeds), faults=faults)


def _with_links(fact: GpuFact, gpu: Raw, speeds: Sequence[int]) -> GpuFact:
    active = active_links(gpu)
    version = min((link["version"] for link in active if "version" in link), default=0)
    return replace(
        fact,
        nvlinks=None if links_untold(gpu) else len(active),
        nvlink_bytes_per_s=speeds[0] * 1e6 if speeds else None,
        nvlink_version=LINK_VERSIONS.get(version),
    )


def _settings_faults(gpu: Raw, fact: GpuFact) -> list[str]:
    """PCIe narrower than it could be, and what an administrator has turned on."""
    faults = []
    now, full = fact.pcie_bytes_per_s, fact.pcie_full_bytes_per_s
    if now and full and now < full:
        faults.append(f"PCIe runs x{gpu['pcie_width']}, card and slot allow x{gpu['pcie_max_width']}")
    if gpu.get("mig"):
        slices = "it is cut into slices that have no peer access"
        faults.append(f"MIG is on: {slices}; turn MIG off to plan with the whole GPU")
    mode = gpu.get("bandwidth_mode")
    if mode:
        faults.append(f"NVLink bandwidth is set to {BANDWIDTH_MODES.get(mode, mode)} by policy")
    return faults


def _pcie_bytes_per_s(gpu: Raw, width: str) -> float | None:
    """At the highest generation that card and slot allow: an idle GPU runs at a lower one, at full width."""
    rate = GB_PER_S_OF_LANE.get(gpu.get("pcie_max_generation", 0))
    return rate * 1e9 * gpu[width] if rate and gpu.get(width) else None


def _link_faults(gpu: Raw, speeds: Sequence[int]) -> list[str]:
    refused: dict[int, list[str]] = defaultdict(list)
    for question, code in gpu["errors"].items():
        if question.startswith("NVLink ") and code != TOO_OLD:
            refused[code].append(question.removeprefix("NVLink "))
    up = [link for link in gpu["links"] if link["state"] == 1]
    disabled = [str(link["link"]) for link in up if link.get("field_state") == 3]
    not_peer = [str(link["link"]) for link in up if link.get("p2p") == 0]
    groups = [(error_text(code), refused[code]) for code in sorted(refused)]
    groups += [
        ("up, but its traffic is disabled", disabled),
        ("up, but not for traffic between GPUs", not_peer),
    ]
    faults = [f"NVLink {', '.join(numbers)}: {text}" for text, numbers in groups if numbers]
    if len(speeds) > 1:
        different = ", ".join(map(str, speeds))
        faults.append(f"its NVLinks run at different speeds: {different} MB/s; the lowest is taken for all")
    return faults
