"""What a sweep is asked: the question that is the same for all points, and the choices of each kind."""

from dataclasses import dataclass

from planner.planning.request import PlanRequest
from planner.topology import Topology

FEWEST = "fewest"  # as few redundant experts as divide over the GPUs: 0 in most layouts
AUTO = "auto"  # R by predicted time and memory, as `solve` chooses it
EXPERTS = ("ep", "tp")  # whole on one GPU or more, or a slice of each on every GPU
METHOD = "refine"  # places the experts of every point: a second where `auto` takes a minute


@dataclass(frozen=True)
class SweepRequest:
    """`base` is what no point changes; every other field lists choices.

    None: every EP size that divides the machine; the usual tokens of the phase; the engine's own transport.
    """

    base: PlanRequest
    topologies: tuple[str | Topology | None, ...] = (None,)
    ep: tuple[int, ...] | None = None
    attention_tp: tuple[int, ...] = (1,)
    redundant: tuple[int | str, ...] = (FEWEST, AUTO)
    engines: tuple[str | None, ...] = (None,)
    phases: tuple[str, ...] = ("decode",)
    transports: tuple[str | None, ...] = (None,)
    tokens_per_rank: tuple[int | None, ...] = (None,)
    experts: tuple[str, ...] = EXPERTS
    tpot_seconds: float | None = None  # no decode step may take longer


@dataclass(frozen=True)
class Point:
    """One layout in one step: `groups` servers of `ep` GPUs each fill the machine.

    `sliced`: without expert parallelism, every GPU of a server holds a slice of every expert.
    """

    machine: str
    ep: int
    groups: int
    redundant: int | str
    engine: str | None
    phase: str
    transport: str | None
    tokens_per_rank: int | None
    attention_tp: int
    sliced: bool = False

    @property
    def layout(self) -> str:
        """
        >>> Point("lab", 8, 2, 0, None, "decode", None, None, 1).layout
        '2 x EP8'
        """
        one = f"TP{self.ep}" if self.sliced else f"EP{self.ep}"
        return f"{self.groups} x {one}" if self.groups > 1 else one
