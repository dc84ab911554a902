"""`rocm-smi`, `amd-smi` and `rocminfo`: told apart from NVIDIA's tools, and refused by name.

Their tables of links look like those of `nvidia-smi topo -m`, and say nothing of a machine that we can plan:
the catalogue has NVIDIA's GPUs and NVLink alone.
"""

import re
from typing import NoReturn

from planner.base import BadInput

LARGEST_TEXT = 1 << 20
_TOOLS = (
    (
        "rocm-smi",
        re.compile(rb"ROCm System Management Interface|ROCm[- ]SMI|\(Topology\) (?:Numa|Link|Weight|Hops)"),
    ),
    ("rocm-smi", re.compile(rb"(?:Weight|Hops|Link Type|Link accessibility) between two GPUs")),
    (
        "amd-smi",
        re.compile(rb"\bAMD[- ]SMI\b|^(?:WEIGHT|HOPS|LINK TYPE|NUMA BW|ACCESS) TABLE:", re.MULTILINE),
    ),
    (
        "amd-smi",
        re.compile(rb"\"link_type\": ?\"XGMI\"|\"market_name\": ?\"(?:AMD|MI\d)|MARKET_NAME: (?:AMD|MI\d)"),
    ),
    ("amd-smi", re.compile(rb"^GPU: \d{1,3}\s{1,16}BDF: [0-9a-f]{4}:", re.MULTILINE)),
    (
        "rocminfo",
        re.compile(rb"^ROCk module|Marketing Name:\s{1,32}AMD|^HSA System Attributes", re.MULTILINE),
    ),
)
_GPU = re.compile(rb"GPU\[?(\d{1,3})\]?\b|GPU: (\d{1,3})\b|\"gpu\": ?(\d{1,3})\b|\bcard(\d{1,3})\b")


def recognise(content: bytes, name: str) -> bool:
    del name
    return tool_of(content) is not None


def read(content: bytes, name: str) -> NoReturn:
    """BadInput: what it is, and what to give instead."""
    numbers = {int(next(filter(None, found))) for found in _GPU.findall(content[:LARGEST_TEXT])}
    count = f" of {len(numbers)} GPUs" if numbers else ""
    known = "AMD's GPUs are not in the catalogue, which has NVIDIA's and NVLink alone"
    raise BadInput(
        f"{name}: is {tool_of(content)}'s output{count}: {known}; "
        "describe the machine in a topology file, with its GPUs under gpu_models (docs/formats.md)"
    )


def tool_of(content: bytes) -> str | None:
    """The tool of AMD's that printed a text."""
    head = content[:LARGEST_TEXT]
    return next((tool for tool, words in _TOOLS if words.search(head)), None)
