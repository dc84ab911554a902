"""`nvidia-smi -q`, as text or XML (-x): names, UUIDs, PCI, memory, MIG, the NVLink fabric and its clique.

What joins the GPUs it does not tell, but for a fabric that is ready: then GPUs of one UUID and clique share a
domain, on whichever host.
"""

import re

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, HostFacts, Notes
from probes.importers.smi_fields import Fields, domains_by_fabric, gpu_of_fields
from probes.importers.smi_query_xml import is_log, read_log

KIND = "nvidia-smi-q"
OF_ONE_HOST = True
LARGEST_TEXT = 8 << 20
_START = re.compile(
    rb"NVSMI LOG|(?m:^[ \t>]{0,16}GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*$)"
)
_GPU = re.compile(r"[ \t>]{0,16}GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")
_FIELD = re.compile(r"[ \t>]{0,64}([A-Za-z][\w ()/.-]{0,63}?)\s{0,64}:(?:\s+(.{0,512}))?")
_HEADING = re.compile(r"[ \t>]{0,64}([A-Za-z][\w ()/.-]{0,63}?)\s*")
_ATTACHED = re.compile(r"[ \t>]{0,16}Attached GPUs\s{1,64}: (\d{1,4})\s*")


def recognise(content: bytes, name: str) -> bool:
    del name
    head = content[:LARGEST_TEXT]
    return is_log(content) or (b"GPU 0" in head and _START.search(head) is not None)


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host. BadInput where no GPU is in it, or one is in it twice with another UUID."""
    attached, gpus = read_log(content, name) if is_log(content) else _gpus_of_text(content)
    notes = Notes()
    kept: dict[str, Fields] = {}
    for pci, fields in gpus:
        if kept.setdefault(pci, fields).get("gpu uuid") != fields.get("gpu uuid"):
            raise BadInput(
                f"{name}: GPU {pci} comes twice with different UUIDs; give each host a file of its own"
            )
    if not 0 < len(kept) <= LARGEST_NODE_GPUS:
        raise BadInput(f"{name}: shows {len(kept)} GPUs; give the whole output of 'nvidia-smi -q'")
    facts = tuple(gpu_of_fields(place, pci, kept[pci], notes) for place, pci in enumerate(sorted(kept)))
    _note_missing(attached, facts, notes)
    domains = domains_by_fabric(facts)
    host = HostFacts(
        name,
        KIND,
        "imported",
        gpus=facts,
        nvlink_kind=domains.kind if domains else None,
        domains=domains.domains if domains else None,
        unknown=tuple(notes.unknown),
        warnings=tuple(notes.warnings),
    )
    return (host,)


def _gpus_of_text(content: bytes) -> tuple[int | None, list[tuple[str, Fields]]]:
    """How many GPUs are attached, and the fields of each block by 'heading/field' in lower case."""
    attached: int | None = None
    gpus: list[tuple[str, Fields]] = []
    heading = ""
    for line in content[:LARGEST_TEXT].decode("utf-8", errors="replace").split("\n"):
        if gpu := _GPU.fullmatch(line):
            gpus.append((gpu[1].lower()[-12:], {}))
            heading = ""
        elif count := _ATTACHED.fullmatch(line):
            attached = int(count[1]) if attached is None else attached
        elif not gpus:
            continue
        elif field := _FIELD.fullmatch(line):
            key, value = field[1].strip().lower(), (field[2] or "").strip()
            fields = gpus[-1][1]
            fields.setdefault(key, value)
            fields[f"{heading}/{key}"] = value
        elif title := _HEADING.fullmatch(line):
            heading = title[1].lower()
    return attached, gpus


def _note_missing(attached: int | None, gpus: tuple[GpuFact, ...], notes: Notes) -> None:
    bare = [gpu.index for gpu in gpus if gpu.name is None or gpu.uuid is None]
    if bare:
        which = ", ".join(map(str, bare[:8]))
        notes.unknown.append(f"GPU {which}: name or UUID are not in the text, which may be cut")
    if attached is None:
        notes.unknown.append(
            "the line 'Attached GPUs' is not in the text: whether there are others is not known"
        )
    elif attached != len(gpus):
        notes.unknown.append(
            f"{attached} GPUs are attached and {len(gpus)} are shown: the others are not known"
        )
