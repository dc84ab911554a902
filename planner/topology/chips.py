"""Chips of GPUs by the name of their model: measurements and kernels go by the chip.

Names are a topology's; what follows the chip (SXM, memory, form) is left out.
"""

import re

from planner.topology.topology import Topology

_CHIP = re.compile(r"(?:NVIDIA )?(RTX PRO \d+|[A-Z]+\d+[A-Z]?)\b")


def chip_of(name: str) -> str | None:
    """
    >>> [chip_of(name) for name in ("H20-3e-SXM-141GB", "NVIDIA GB200", "RTX-PRO-6000-96GB", "mine")]
    ['H20', 'GB200', 'RTX PRO 6000', None]
    """
    found = _CHIP.match(re.sub(r"[-_ ]+", " ", name.upper()))
    return found[1] if found else None


def gpu_names(topology: Topology) -> tuple[str, ...]:
    """The models of its GPUs, each once, in rank order."""
    models = (model.name for node in dict.fromkeys(topology.nodes) for model in node.gpus)
    return tuple(dict.fromkeys(models))
