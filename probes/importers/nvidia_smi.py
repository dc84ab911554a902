"""Small outputs of nvidia-smi: `-L`, `nvlink -s`, `nvlink -R` and `--query-gpu=... --format=csv`.

They tell names, UUIDs and MIG; active links and their rate, or their far ends; names and fabric. Which GPUs
the links join only the far ends say: without them domains stay unknown, but for GPUs without any link.
"""

import re
from dataclasses import replace

from probes.base.facts import GpuFact, HostFacts, Notes
from probes.importers.smi_csv import gpus_of_csv, table_of
from probes.importers.smi_far_ends import domains_of_far_ends
from probes.importers.smi_fields import domains_by_fabric
from probes.importers.smi_list import Listed, gpus_of_list, is_listed
from probes.machine.nvlink_domains import Domains

LARGEST_TEXT = 8 << 20
_START = re.compile(
    rb"(?m)^\s{0,16}GPU \d{1,3}: [^\n]{1,80} \(UUID: GPU-"
    rb"|^[ \t]{0,8}[a-z_.]{2,40}(?: \[\w{1,8}\])?, ?[a-z_., \[\]/]{0,200}(?:name|uuid|fabric)"
    rb"|^[ \t]{0,8}[^\n,]{1,80}, [^\n]{0,200}(?:GPU-[0-9a-f]{8}-|[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])",
    re.IGNORECASE,
)
OF_ONE_HOST = True


def recognise(content: bytes, name: str) -> bool:
    return _START.search(content[:LARGEST_TEXT]) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """What each kind of output in the text tells of its one host.

    BadInput where a GPU comes twice with different identity, or a CSV has rows of another length.
    """
    lines = content[:LARGEST_TEXT].decode("utf-8", errors="replace").replace("\r", "").split("\n")
    table = table_of(lines)
    facts = []
    if table is not None:
        notes = Notes()
        facts.append(
            _host(Listed("nvidia-smi-query", gpus_of_csv(lines, table, name, notes), {}), name, notes)
        )
    if table is None or any(is_listed(line) for line in lines):
        notes = Notes()
        facts.append(_host(gpus_of_list(lines, name, notes), name, notes))
    return tuple(facts)


def _host(listed: Listed, name: str, notes: Notes) -> HostFacts:
    gpus = listed.gpus
    order = [gpu.index for gpu in gpus]
    if order != list(range(len(gpus))):
        shown = ", ".join(map(str, order))
        notes.unknown.append(f"the text shows GPUs {shown} only; whether there are others is not known")
        gpus = tuple(replace(gpu, index=place) for place, gpu in enumerate(gpus))
    domains = _domains(listed, order, gpus, notes)
    return HostFacts(
        name,
        listed.kind,
        "imported",
        gpus=gpus,
        nvlink_kind=domains.kind if domains else None,
        domains=domains.domains if domains else None,
        unknown=tuple(notes.unknown),
        warnings=tuple(notes.warnings),
    )


def _domains(listed: Listed, order: list[int], gpus: tuple[GpuFact, ...], notes: Notes) -> Domains | None:
    """By the far ends of the links, a fabric of all, or as no GPU has a link; None where none is told."""
    links = tuple(gpu.nvlinks for gpu in gpus)
    if all(count == 0 for count in links):
        return Domains("none", tuple((gpu.index,) for gpu in gpus), links)
    if not listed.far:
        return domains_by_fabric(gpus)
    far = {place: listed.far[index] for place, index in enumerate(order) if index in listed.far}
    domains = domains_of_far_ends(far, links)
    if domains is None:
        notes.unknown.append("the far ends of the NVLinks fit no machine: which GPUs they join is not known")
        return None
    notes.unknown += domains.unknown
    notes.warnings += domains.warnings
    return domains
