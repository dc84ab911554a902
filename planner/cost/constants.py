"""Constants of the cost model, each with where it came from.

A measurement of the cluster replaces them; until then plans call them what they are.
"""

from dataclasses import dataclass
from math import log2

FITTED_SLOT = (
    "fitted to H100 low-latency DeepEP, 1 to 8 nodes (figures of aiconfigurator-core 0.12.0, Apache-2.0); "
    "leaving one node count out, mean error 3-6 % for dispatch, 4-15 % for combine"
)
FITTED_COMPUTE = (
    "fitted to H100 FP8 grouped GEMM (figures of aiconfigurator-core 0.12.0, Apache-2.0), 21 % mean error; "
    "other GPUs: same shares assumed"
)
ASSUMED_NORMAL = (
    "assumed: start-up of H100 one-node DeepEP normal mode; 75 % of NVLink and 85 % of NIC line rate"
)


@dataclass(frozen=True)
class PhaseConstants:
    """One direction of a transport, for `ranks` of them.

    seconds = max(fixed + per_doubling · log2(ranks), 0) + max over resources of bytes / (rate · efficiency).
    """

    fixed_seconds: float
    seconds_per_doubling: float
    nvlink_efficiency: float
    nic_efficiency: float
    source: str

    def start_seconds(self, ranks: int) -> float:
        """Time before the first byte counts, for this many ranks; a single rank sends nothing."""
        return max(self.fixed_seconds + self.seconds_per_doubling * log2(ranks), 0.0) if ranks > 1 else 0.0

    def efficiency(self, tier: str) -> float:
        """Share of a tier's line rate that messages reach."""
        return {"nvlink": self.nvlink_efficiency, "pcie": 0.8, "host": 0.8}.get(tier, self.nic_efficiency)


@dataclass(frozen=True)
class ComputeConstants:
    """Expert compute of a GPU.

    seconds = fixed + max(operations / (peak · share), touched weight bytes / (bandwidth · share)).
    """

    fixed_seconds: float
    flops_efficiency: float
    memory_efficiency: float
    source: str


DISPATCH = {
    "slot": PhaseConstants(1.5e-6, 4.6e-6, 0.58, 0.96, FITTED_SLOT),
    "rank": PhaseConstants(37e-6, 0.0, 0.75, 0.85, ASSUMED_NORMAL),
    "node": PhaseConstants(37e-6, 0.0, 0.75, 0.85, ASSUMED_NORMAL),
    "allgather": PhaseConstants(20e-6, 0.0, 0.75, 0.85, "assumed"),
}
COMBINE = {
    "slot": PhaseConstants(-5.6e-6, 6.0e-6, 0.46, 0.92, FITTED_SLOT),
    "rank": PhaseConstants(49e-6, 0.0, 0.75, 0.85, ASSUMED_NORMAL),
    "node": PhaseConstants(49e-6, 0.0, 0.75, 0.85, ASSUMED_NORMAL),
    "allgather": PhaseConstants(20e-6, 0.0, 0.75, 0.85, "assumed"),
}
COMPUTE = ComputeConstants(39e-6, 0.18, 0.95, FITTED_COMPUTE)
