"""A machine, what a step costs on it, and what it would cost with a fault mended.

A cost is a prediction of the whole step for an even load and the plain placement: the step as it is, over the
step with that one fault mended. So it says what the machine costs, apart from any plan.
"""

from dataclasses import dataclass, replace

from planner.base import human_seconds
from planner.cost import Cost, Routing, WholeStep, cost, message_bytes, messages_GG, whole_step
from planner.load import uniform_load
from planner.model import ModelSpec
from planner.problem import Problem, Workload, check_slots
from planner.replica import find_rule
from planner.solvers import find_method
from planner.topology import Fabric, Node, Topology

LEAST_LOSS = 0.005  # of a step; below it a cost is not worth a number


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, or that a person should know.

    `cost` is empty where none can be predicted; `cost_seconds` are of a step.
    """

    rule: str
    where: str
    what: str
    cost: str
    remedy: str
    cost_seconds: float | None = None


@dataclass(frozen=True)
class Mended:
    """A step as it is, and with one thing mended."""

    seconds: float
    mended_seconds: float

    @property
    def lost_seconds(self) -> float:
        """What mending saves; never negative: a prediction with a stated rate may be the slower one."""
        return max(0.0, self.seconds - self.mended_seconds)

    @property
    def share(self) -> float:
        """Of the step as it is."""
        return self.lost_seconds / self.seconds

    @property
    def text(self) -> str:
        longer = self.lost_seconds / self.mended_seconds
        if longer < LEAST_LOSS:
            return f"under {LEAST_LOSS:.1%} of a step"
        return (
            f"step {longer:.1%} longer, {human_seconds(self.mended_seconds)} to {human_seconds(self.seconds)}"
        )


class MachineCost:
    """The machine, and what a step costs on it and on mended versions of it."""

    def __init__(self, topology: Topology, model: ModelSpec, workload: Workload) -> None:
        self.topology, self.model, self.workload = topology, model, workload
        self.now, self.step = self._step(topology)

    def _step(self, topology: Topology) -> tuple[Cost, WholeStep]:
        """Of the layers with experts, and whole."""
        problem = self.problem(topology)
        layers = cost(problem, find_method("linear")(problem))
        return layers, whole_step(problem, layers, None)

    def problem(self, topology: Topology) -> Problem:
        redundant = -self.model.experts % topology.gpu_count
        slots_per_gpu = check_slots(self.model, topology.gpu_count, redundant)
        return Problem(topology, self.model, uniform_load(self.model), self.workload, slots_per_gpu)

    def loss_by(self, node: Node, mended: Node) -> Mended:
        """What the machine loses against one with `mended` in the place of that node."""
        return self.loss(tuple(mended if other is node else other for other in self.topology.nodes))

    def loss(
        self, nodes: tuple[Node, ...] | None = None, fabric: Fabric | None = None, now: Fabric | None = None
    ) -> Mended:
        """What the machine loses against one with these nodes or that fabric.

        `now` is its fabric where another than its own is meant.
        """
        mended = self._seconds(nodes, fabric)
        return Mended(self._seconds(None, now), mended)

    def _seconds(self, nodes: tuple[Node, ...] | None, fabric: Fabric | None) -> float:
        nodes, fabric = nodes or self.topology.nodes, fabric or self.topology.fabric
        if nodes == self.topology.nodes and fabric == self.topology.fabric:
            return self.step.total_seconds
        return self._step(replace(self.topology, nodes=nodes, fabric=fabric))[1].total_seconds

    @property
    def moving_seconds(self) -> float:
        """Dispatch and combine of the step."""
        return self.step.seconds["dispatch"] + self.step.seconds["combine"]

    def peer_bytes(self) -> float:
        """Bytes that the first GPU's dispatch sends to each GPU it sends anything, on average over those."""
        problem = self.problem(self.topology)
        placement = find_method("linear")(problem)
        shares = find_rule(problem.replica_rule)(placement, problem.situation(problem.load))
        routing = Routing(problem.load.shares_LE[0], next(iter(shares)), placement.expert_LP[0], None)
        others_G = messages_GG(problem, routing)[0, 1:]
        return float(others_G[others_G > 0].mean() * message_bytes(problem)[0]) if others_G.any() else 0.0
