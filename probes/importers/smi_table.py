"""The table that plain `nvidia-smi` prints: names (cut where they are long), PCI addresses, memory, MIG.

|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
| N/A   30C    P0             70W / 700W  |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
"""

import re
from dataclasses import replace

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS, gpu_model
from probes.base.facts import GpuFact, HostFacts, Notes
from probes.machine.gpu_names import models_begun

KIND = "nvidia-smi"
OF_ONE_HOST = True
LARGEST_TEXT = 8 << 20
MIB = 1 << 20
_START = re.compile(
    rb"\|\s{1,4}\d{1,3}\s{1,4}[\w][^|\n]{2,64}\|\s{1,8}[0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7] "
)
_GPU = re.compile(
    r"[ \t>]{0,16}\|\s{1,4}(\d{1,3})\s{1,4}(\S[^|]{0,60}?)\s{1,32}(?:On|Off|N/A|TCC|WDDM|MCDM)\s{0,32}"
    r"\|\s{1,8}([0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7])\s.{0,200}"
)
_PLACE = re.compile(rb"\|[ \t]{1,8}[0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7] ")
_BESIDE = re.compile(rb"\d{1,9}MiB */ *\d{1,9}MiB")
_MEMORY = re.compile(r"\s([0-9]{1,9})MiB\s{1,16}\|")
_MIG = re.compile(r"\|\s{1,64}\|\s{1,64}\|\s{1,64}(Enabled|Disabled|N/A)\s{0,8}\*?\s{0,8}\|")
_FITS = 0.15  # of the memory, beside a data sheet's: ECC and the driver take some


def recognise(content: bytes, name: str) -> bool:
    del name
    head = content[:LARGEST_TEXT]
    return b"MiB" in head and _START.search(head) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host. BadInput where an index comes twice with another address."""
    notes = Notes()
    gpus: dict[int, GpuFact] = {}
    last: int | None = None
    for line in content[:LARGEST_TEXT].decode("utf-8", errors="replace").split("\n"):
        if row := _GPU.fullmatch(line.rstrip()):
            last = int(row[1])
            fact = GpuFact(last, row[2], pci=row[3].lower()[-12:])
            if gpus.setdefault(last, fact).pci != fact.pci or last >= LARGEST_NODE_GPUS:
                raise BadInput(f"{name}: GPU {last} comes twice; give each host a file of its own")
        elif last is not None and (mig := _MIG.search(line)):
            sliced = ("MIG is on: the GPU is split into instances, which NVLink does not join",)
            gpus[last] = replace(gpus[last], faults=sliced if mig[1] == "Enabled" else ())
        elif last is not None and gpus[last].memory_bytes is None and (memory := _MEMORY.search(line)):
            gpus[last] = replace(gpus[last], memory_bytes=int(memory[1]) * MIB)
    if not gpus:
        raise BadInput(f"{name}: no row of a GPU can be read whole; give 'nvidia-smi -L'")
    text = content[:LARGEST_TEXT]
    shown = max(len(_PLACE.findall(text)), len(_BESIDE.findall(text)))
    if shown > len(gpus):
        notes.unknown.append(f"the table seems to have {shown} GPUs, {len(gpus)} can be read: it is damaged")
    if sorted(gpus) != list(range(len(gpus))):
        only = ", ".join(map(str, sorted(gpus)))
        notes.unknown.append(f"the table shows GPUs {only} only; whether there are others is not known")
    facts = tuple(replace(_whole(gpus[index], notes), index=at) for at, index in enumerate(sorted(gpus)))
    told = tuple(dict.fromkeys(notes.unknown))
    return (HostFacts(name, KIND, "imported", gpus=facts, unknown=told),)


def _whole(gpu: GpuFact, notes: Notes) -> GpuFact:
    """With its whole name where the table has cut it: the one model that begins so and has that memory."""
    cut = gpu.name or ""
    if not cut.endswith("..."):
        return gpu
    begun = models_begun(cut)
    memory = gpu.memory_bytes
    if len(begun) > 1 and memory is not None:
        begun = [one for one in begun if abs(gpu_model(one.model).memory_bytes - memory) <= _FITS * memory]
    if len(begun) == 1:
        return replace(gpu, name=f"NVIDIA {begun[0].model}")
    notes.unknown.append(f"the name {cut!r} is cut in the table; give 'nvidia-smi -L' for the whole name")
    return replace(gpu, name=None)
