"""GPU names in the reports that bug forms ask for: SGLang's check_env, PyTorch's and vLLM's collect_env.

    GPU 0,1,2,3: NVIDIA H100 80GB HBM3
    GPU 0: NVIDIA A100-SXM4-80GB

They name the GPUs, nothing more; the `topo -m` that stands in the same report is read by its own importer.
"""

import re

from planner.base import BadInput
from planner.topology import LARGEST_NODE_GPUS
from probes.base.facts import GpuFact, HostFacts

LARGEST_TEXT = 8 << 20
_LINE = re.compile(
    r"(?m)^[ \t>]{0,16}GPU (\d{1,3}(?:, ?\d{1,3}){0,127}): "  # one, or all that are alike
    r"((?:NVIDIA|Tesla|Quadro|AMD) [\w .()/-]{1,80}?)[ \t\r]*$"  # `nvidia-smi -L` goes on with a UUID
)


def recognise(content: bytes, name: str) -> bool:
    del name
    return _LINE.search(_text(content)) is not None


def read(content: bytes, name: str) -> tuple[HostFacts, ...]:
    """The one host of the report. BadInput where it names a GPU twice, otherwise."""
    names: dict[int, str] = {}
    for found in _LINE.finditer(_text(content)):
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


def _text(content: bytes) -> str:
    return content[:LARGEST_TEXT].decode("utf-8", errors="replace")
