"""What one GPU of a machine does in a second, and what its links carry."""

import numpy as np

from planner.problem import Problem


class Machine:
    """Rates of the slowest GPU, and of the path between the ends of an attention group."""

    def __init__(self, problem: Problem) -> None:
        topology = problem.topology
        self._topology = topology
        self._speed_G = topology.speed_G
        self.bytes_per_s = float((topology.memory_bytes_per_s_G * self._speed_G).min())

    def flops_per_s(self, dtype: str) -> float:
        """Dense peak for weights of `dtype`; what is stored in four bits is taken at the fp8 rate."""
        peak = "bf16" if dtype in ("bf16", "int4") else "fp8"
        return float((self._topology.peak_flops_per_s_G(peak) * self._speed_G).min())

    def gemm_seconds(self, weights: float, weight_bytes: float, dtype: str, tokens: float) -> float:
        """Seconds of `tokens` through these weights: operations or reading, whichever takes longer."""
        flops = 2.0 * weights * tokens
        return max(flops / self.flops_per_s(dtype), weight_bytes / self.bytes_per_s)

    def link_bytes_per_s(self, gpus: int) -> float:
        """What the narrowest link between the first and the last of so many GPUs carries."""
        route = list(self._topology.route(0, gpus - 1))
        return float(np.min(self._topology.capacity_R[route])) if route else float("inf")
