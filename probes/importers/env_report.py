"""GPU names in the reports that bug forms ask for: SGLang's check_env, PyTorch's and vLLM's collect_env.

    GPU 0,1,2,3: NVIDIA H100 80GB HBM3
    GPU 0: NVIDIA A100-SXM4-80GB

They name the GPUs, nothing more; the `topo -m` that stands in the same report is read by its own importer.
"""

import re
from collections.abc import Iterator

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, HostFacts
from probes.machine.gpu_names import links_of_gpu

LARGEST_TEXT = 8 << 20
_VENDORS = ("NVIDIA ", "Tesla ", "Quadro ", "GeForce ", "TITAN ", "GRID ", "AMD ")
_LINE = re.compile(
    r"(?m)^[ \t>]{0,16}(?:GPU models and configuration: {1,4})?"
    r"(?:GPU|Device) (\d{1,3}(?:, ?\d{1,3}){0,127}): "  # one, or all that are alike
    r"([\w .()/-]{1,80}?)(?:, compute capability [^\n]{0,80})?[ \t\r]*$"  # -L goes on with a UUID
)
OF_ONE_HOST = True


def recognise(content: bytes, name: str) -> bool:
    del name
    return next(_lines(content), None) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host of the report. BadInput where it names a GPU twice, otherwise."""
    names: dict[int, str] = {}
    for found in _lines(content):
        for number in found[1].split(","):
            index = int(number)
            if names.setdefault(index, found[2]) != found[2] or index >= LARGEST_NODE_GPUS:
                both = f"GPU {index} is {names[index]} and {found[2]}"
                raise BadInput(f"{name}: {both}; give the report of each host as a file of its own")
    gpus = tuple(GpuFact(place, names[index]) for place, index in enumerate(sorted(names)))
    shown = ", ".join(map(str, sorted(names)))
    whole = sorted(names) == list(range(len(names)))
    unknown = () if whole else (f"the report names GPUs {shown} only; whether there are others is not known",)
    return (HostFacts(name, "env-report", "imported", gpus=gpus, unknown=unknown),)


def _lines(content: bytes) -> Iterator[re.Match[str]]:
    """The lines that name a GPU; drivers before 2021 left the vendor's name out."""
    for found in _LINE.finditer(content[:LARGEST_TEXT].decode("utf-8", errors="replace")):
        name = found[2]
        is_product = name.startswith(_VENDORS) or links_of_gpu(name) is not None
        if is_product and name.count("(") == name.count(")") and "UUID" not in name:
            yield found
