"""How long the ranks took for one layer under one placement, and how long that should take.

Shapes: G GPUs (one rank each), N repeats, R resources of the topology.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.seen import PHASES

Floats = npt.NDArray[np.float64]
EXCHANGES = ("dispatch", "combine")  # the phases that go over links


@dataclass(frozen=True, eq=False)
class Expected:
    """What the cost model says, for the width and tokens of the run itself.

    `modelled` is by expectation over what the load may draw, `drawn` from the very bytes that this run sends.
    Both are by phase and include start-up; what is by phase and resource has the exchanges alone.
    """

    modelled: Mapping[str, float]
    drawn: Mapping[str, float]
    drawn_R: Mapping[str, Floats]  # seconds of each resource by the bytes drawn, without start-up
    start: Mapping[str, float]  # seconds before the first byte counts
    bytes_GG: Mapping[str, Floats]  # what is sent, by sender and receiver, all hops together
    bytes_per_s_R: Mapping[str, Floats]  # what each resource is taken to carry
    compute_G: Floats  # seconds of each rank's expert compute by the assignments drawn

    def __post_init__(self) -> None:
        for name in ("modelled", "drawn"):
            if set(getattr(self, name)) != set(PHASES):
                raise ValueError(f"{name} has phases {sorted(getattr(self, name))}")
        for name in ("drawn_R", "start", "bytes_GG", "bytes_per_s_R"):
            if set(getattr(self, name)) != set(EXCHANGES):
                raise ValueError(f"{name} has phases {sorted(getattr(self, name))}")


@dataclass(frozen=True, eq=False)
class Timed:
    """One layer under one placement. Repeat n of every side of a row ran next to repeat n of the others."""

    side: str  # plan, default, against, ...
    layer_id: int
    row: int  # of the job
    seconds_GN: Mapping[str, Floats]  # by phase
    expected: Expected

    def __post_init__(self) -> None:
        shapes = {seconds_GN.shape for seconds_GN in self.seconds_GN.values()}
        if set(self.seconds_GN) != set(PHASES) or len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise ValueError(f"{self.side}, row {self.row}: seconds of shapes {shapes}")

    @property
    def repeats(self) -> int:
        return int(next(iter(self.seconds_GN.values())).shape[1])

    def slowest_N(self, phase: str) -> Floats:
        """Seconds of the slowest rank in each repeat: the phase is over when that is."""
        slowest_N: Floats = self.seconds_GN[phase].max(axis=0)
        return slowest_N

    def seconds(self, phase: str) -> float:
        """The median over the repeats."""
        return float(np.median(self.slowest_N(phase)))
