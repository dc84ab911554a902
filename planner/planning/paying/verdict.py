"""What was found: an alternative as figures, and which of them pays."""

from dataclasses import dataclass

from planner.engines import OnlineBalancer
from planner.planning.paying.drift import Drift
from planner.planning.paying.rearranging import Rearrangement
from planner.planning.paying.series import Series
from planner.planning.worth import WORTH_IT
from planner.problem import Problem

LOADED_ONCE = ("permutation", "static plan", "EPLB once")


@dataclass(frozen=True)
class Row:
    """An alternative as figures: means over the steps of the judged windows.

    A step is a whole one, attention and the engine included; its MoE layers are also told by themselves, as a
    plan's cost has them. `pause_seconds` of moving weights come on top. Bytes are of one GPU.
    """

    name: str
    redundant: int
    step_seconds: float
    moe_seconds: float
    pause_seconds: float
    max_over_mean: float
    cross_node_share: float  # of assignments
    tokens_per_rank: int  # no more than memory has requests for
    requests: int  # at full context, that memory holds on all GPUs
    tokens_per_s: float  # of all GPUs; 0 where not even one request fits
    memory_bytes: float  # of replicas and buffers, beyond one slot for each expert
    rearrangement: Rearrangement | None
    rearranged: int  # how often within the judged windows
    note: str


@dataclass(frozen=True, eq=False)
class Pays:
    """The rows by name, and what they rest on."""

    rows: dict[str, Row]
    problem: Problem
    series: Series
    drift: Drift
    balancer: OnlineBalancer
    balancer_of: str
    engine: str | None
    error: str  # of a predicted step on this GPU
    notes: tuple[str, ...]

    @property
    def online(self) -> Row:
        """As the engine does it."""
        return self.rows["EPLB, stops" if self.balancer.stalls else "EPLB, async"]

    @property
    def best_static(self) -> Row:
        """What to load once: the first of these within WORTH_IT of the fastest: replicas have to earn it."""
        found = [self.rows[name] for name in LOADED_ONCE if name in self.rows]
        least = max(row.tokens_per_s for row in found) / (1 + WORTH_IT)
        return next(row for row in found if row.tokens_per_s >= least)

    @property
    def winner(self) -> Row | None:
        """What pays; None where nothing is worth it. A static plan, where online balancing is no better."""
        least = self.rows["default"].tokens_per_s * (1 + WORTH_IT)
        if self.online.tokens_per_s > max(self.best_static.tokens_per_s * (1 + WORTH_IT), least):
            return self.online
        return self.best_static if self.best_static.tokens_per_s >= least else None

    def gain(self, row: Row, beside: Row | None = None) -> float:
        """Tokens a second more than the default, or than `beside`, as a share."""
        return row.tokens_per_s / (beside or self.rows["default"]).tokens_per_s - 1
