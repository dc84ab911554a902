"""Compute capability of GPUs by the name of their model: engines choose their kernels by it.

Source: NVIDIA's list of CUDA GPUs.
"""

from planner.topology import Topology, chip_of, gpu_names

Capability = tuple[int, int]
SM90, SM100 = 9, 10  # majors: the generations whose kernels were looked at
CAPABILITIES: dict[str, Capability] = {
    "V100": (7, 0),
    "T4": (7, 5),
    **dict.fromkeys(("A100", "A800", "A30"), (8, 0)),
    **dict.fromkeys(("A10", "A40", "A6000"), (8, 6)),
    **dict.fromkeys(("L4", "L40", "L40S"), (8, 9)),
    **dict.fromkeys(("H100", "H800", "H200", "H20", "GH200"), (9, 0)),
    **dict.fromkeys(("B200", "GB200"), (10, 0)),
    **dict.fromkeys(("B300", "GB300"), (10, 3)),
    "RTX PRO 6000": (12, 0),
}


def capability_of(name: str) -> Capability | None:
    """
    >>> capability_of("H20-3e-SXM-141GB"), capability_of("NVIDIA GB200-186GB"), capability_of("mine")
    ((9, 0), (10, 0), None)
    """
    return CAPABILITIES.get(chip_of(name) or "")


def capability(topology: Topology) -> Capability | None:
    """That of every GPU here; None where one is not known, or they differ."""
    found = {capability_of(name) for name in gpu_names(topology)}
    return found.pop() if len(found) == 1 else None


def generation(topology: Topology) -> int:
    """The major of the compute capability; SM90's where it is not known."""
    found = capability(topology)
    return SM90 if found is None else found[0]


def nearest_generation(topology: Topology) -> int:
    """The generation whose rules are taken: one of those that were looked at."""
    return SM100 if generation(topology) == SM100 else SM90
