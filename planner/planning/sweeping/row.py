"""A row of a sweep: a point with its figures, or with the reason why it does not fit."""

from dataclasses import dataclass

from planner.cost import WholeStep
from planner.planning.sweeping.request import Point


@dataclass(frozen=True)
class Service:
    """What the judge of launches says of one engine. `own`: it would serve by its own placement, not ours."""

    engine: str
    serves: bool
    own: bool
    why: str  # the first rule that refuses it
    launch: str = ""  # words that serve a layout which needs no plan


@dataclass(frozen=True)
class Figures:
    """What a layout that fits is predicted to do, of its slowest group; on held-out load where there is some.

    `nics_halved` and `full_fabric`: tokens/s a GPU of the same placement with every NIC at half its rate, and
    with a fabric of 1:1; None where no traffic leaves a node, or the fabric is 1:1 already.
    """

    redundant: int
    slots_per_gpu: int
    tokens_per_rank: int
    transport: str
    replica_rule: str
    step: WholeStep
    max_over_mean: float
    bottleneck: str
    memory_left_bytes: float
    requests: int  # at full context, that GPUs which share a request hold at once
    nics_halved: float | None
    full_fabric: float | None
    survives: int  # GPUs of a group that may be lost, whichever, with every expert still there
    services: tuple[Service, ...]
    method: str  # by which experts were placed

    @property
    def tokens_per_s_per_gpu(self) -> float:
        return self.step.tokens_per_s_per_gpu

    @property
    def served(self) -> bool:
        return not self.services or any(service.serves for service in self.services)


@dataclass(frozen=True)
class Row:
    """`why_not`: why the point does not fit; empty where it does, and then it has figures."""

    point: Point
    figures: Figures | None
    why_not: str = ""
