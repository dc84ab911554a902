"""NVML's numbers by name: errors, PCIe distances, peer access, link versions.

Of nvidia-ml-py 13.615 (pynvml.py).
"""

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]  # what `probes.nvml.worker` printed of one GPU, link or pair
TOO_OLD = 13  # the driver lacks the function
LOST = (4, 15, 16)  # no permission, GPU is lost, reset required

ERRORS = {
    -1: "the answer is not text",
    1: "NVML is not initialised",
    2: "invalid argument",
    3: "not supported",
    4: "no permission",
    6: "not found",
    7: "insufficient size",
    9: "the driver is not loaded",
    10: "timeout",
    12: "libnvidia-ml.so.1 is not found",
    13: "not in this driver, which is too old",
    14: "the GPU's inforom is corrupted",
    15: "the GPU is lost: it fell off the bus or is not answering",
    16: "the GPU needs a reset",
    17: "the operating system refused",
    18: "the NVML library and the kernel driver are of different versions",
    19: "in use",
    20: "out of memory",
    21: "no data",
    25: "not in this driver's version of the call",
    27: "not ready",
    28: "GPU not found",
    29: "invalid state",
    999: "unknown error",
}
ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
P2P = {
    0: "OK",
    1: "the chipset does not support it",
    2: "the GPU does not support it",
    3: "the topology does not allow it",
    4: "disabled by a registry key",
    5: "not supported",
    6: "unknown",
}
VIRTUALIZATION = {1: "GPUs passed through to a virtual machine", 2: "virtual GPUs in a guest"}
FABRIC_STATES = {0: "NOT_SUPPORTED", 1: "NOT_STARTED", 2: "IN_PROGRESS", 3: "COMPLETED"}
# NVML gives the number on the left
LINK_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
# PCIe generation: line rate of a lane, per direction
GB_PER_S_OF_LANE = {1: 0.25, 2: 0.5, 3: 1.0, 4: 2.0, 5: 4.0, 6: 8.0}
BANDWIDTH_MODES = {1: "OFF", 2: "MIN", 3: "HALF", 4: "3QUARTER"}  # 0 is FULL


def error_text(code: int) -> str:
    return ERRORS.get(code, f"NVML error {code}")
