"""Probe records for tests. Made up: no such host was probed."""

from typing import Any

from probes.base.facts import GpuFact, HostFacts, NicFact
from probes.ranks.launch import Launch
from probes.record.file import ProbeRecord

TAKEN = "2026-01-15T09:30:00Z"
LATER = "2026-01-16T09:30:00Z"
FABRIC = "3143b15b-c2cd-192b-28cc-9b5473fb5b93.1"


def uuid(host: int, gpu: int) -> str:
    return f"GPU-{host:08x}-0000-4000-8000-{gpu:012x}"


def facts(number: int, name: str | None = None, gpus: int = 2, machine: str | None = "own") -> HostFacts:
    """A host with NICs, a fabric and a fault; `machine` 'own' is one of its own."""
    guid = f"0c42a10300123{number:03x}"
    nic = NicFact("mlx5_0", rate_bytes_per_s=50e9, up=True, guid=guid, card=guid, faults=("slow",))
    return HostFacts(
        "NVML, /sys/class/infiniband",
        "probe",
        "read",
        host=name or f"node{number}",
        gpus=tuple(_gpu(number, gpu) for gpu in range(gpus)),
        nics=(nic,),
        gpu_paths={(0, 1): "NV18"} if gpus > 1 else {},
        nic_paths={(0, 0): "NODE"},
        nvlink_kind="switch",
        domains=(tuple(range(gpus)),),
        unknown=("GPUDirect",),
        warnings=(f"node{number} is warm",),
        machine=f"{number:016x}" if machine == "own" else machine,
        platform="Example GX",
    )


def _gpu(host: int, gpu: int) -> GpuFact:
    return GpuFact(
        gpu,
        "NVIDIA GB200",
        uuid(host, gpu),
        pci=f"0008:0{gpu}:00.0",
        numa=0,
        memory_bytes=186 << 30,
        nvlinks=18,
        nvlink_bytes_per_s=53.125e9,
        nvlink_version="5.0",
        fabric=FABRIC,
    )


def record(
    number: int, name: str | None = None, taken: str = TAKEN, launch: Launch | None = None, **more: Any
) -> ProbeRecord:
    return ProbeRecord(facts(number, name, **more), taken, launch)
