"""Small outputs of nvidia-smi: `-L`, `nvlink -s` and `--query-gpu=... --format=csv`.

They tell names, UUIDs and MIG; active links and their rate; names and fabric. None of them says which GPUs
the links join: domains stay unknown, but for GPUs without any link.
"""

import re
from dataclasses import replace

from probes.base.facts import HostFacts, Notes
from probes.importers.smi_csv import gpus_of_csv
from probes.importers.smi_list import gpus_of_list

LARGEST_TEXT = 8 << 20
_START = re.compile(
    rb"(?m)^\s{0,16}GPU \d{1,3}: [^\n]{1,80} \(UUID: GPU-"
    rb"|^(?:index|name|uuid|gpu_uuid), [a-z_., \[\]/]{0,200}(?:name|uuid|fabric)",
    re.IGNORECASE,
)
_COLUMNS = ("index, ", "name, ", "uuid, ", "gpu_uuid, ")


def recognise(content: bytes, name: str) -> bool:
    return _START.search(content[:LARGEST_TEXT]) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host of the text.

    BadInput where a GPU comes twice with different identity, or a CSV has rows of another length.
    """
    lines = content[:LARGEST_TEXT].decode("utf-8", errors="replace").replace("\r", "").split("\n")
    start = next((at for at, line in enumerate(lines) if line.lower().startswith(_COLUMNS)), None)
    notes = Notes()
    if start is None:
        kind, gpus = gpus_of_list(lines, name, notes)
    else:
        kind, gpus = "nvidia-smi-query", gpus_of_csv(lines, start, name, notes)
    if [gpu.index for gpu in gpus] != list(range(len(gpus))):
        shown = ", ".join(str(gpu.index) for gpu in gpus)
        notes.unknown.append(f"the text shows GPUs {shown} only; whether there are others is not known")
        gpus = tuple(replace(gpu, index=place) for place, gpu in enumerate(gpus))
    bare = all(gpu.nvlinks == 0 for gpu in gpus)
    facts = HostFacts(
        name,
        kind,
        "imported",
        gpus=gpus,
        nvlink_kind="none" if bare else None,
        domains=tuple((gpu.index,) for gpu in gpus) if bare else None,
        unknown=tuple(notes.unknown),
        warnings=tuple(notes.warnings),
    )
    return (facts,)
