"""A machine, what a step costs on it, and what it would cost with a fault mended.

A cost is a prediction for an even load and the plain placement: the step as it is, over the step with that
one fault mended. So it says what the machine costs, apart from any plan.
"""

from dataclasses import dataclass, replace

from planner.base import human_seconds
from planner.cost import Cost, cost
from planner.load import uniform_load
from planner.model import ModelSpec
from planner.problem import Problem, Workload, check_slots
from planner.solvers import find_method
from planner.topology import Fabric, Node, Topology

LEAST_LOSS = 0.005  # of a step; below it a cost is not worth a number


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, or that a person should know. `cost` is empty where none can be predicted."""

    rule: str
    where: str
    what: str
    cost: str
    remedy: str


class MachineCost:
    """The machine, and what a step costs on it and on mended versions of it."""

    def __init__(self, topology: Topology, model: ModelSpec, workload: Workload) -> None:
        self.topology, self.model, self.workload = topology, model, workload
        self.now = self.step(topology)

    def step(self, topology: Topology) -> Cost:
        redundant = -self.model.experts % topology.gpu_count
        slots_per_gpu = check_slots(self.model, topology.gpu_count, redundant)
        problem = Problem(topology, self.model, uniform_load(self.model), self.workload, slots_per_gpu)
        return cost(problem, find_method("linear")(problem))

    def loss_by(self, node: Node, mended: Node) -> str:
        """What the machine loses against one with `mended` in the place of that node."""
        return self.loss(tuple(mended if other is node else other for other in self.topology.nodes))

    def loss(self, nodes: tuple[Node, ...] | None = None, fabric: Fabric | None = None) -> str:
        """What the machine loses against one with these nodes or that fabric."""
        nodes, fabric = nodes or self.topology.nodes, fabric or self.topology.fabric
        mended = self.step(replace(self.topology, nodes=nodes, fabric=fabric))
        share = self.now.total_seconds / mended.total_seconds - 1
        if share < LEAST_LOSS:
            return f"under {LEAST_LOSS:.1%} of a step"
        seconds = f"{human_seconds(mended.total_seconds)} to {human_seconds(self.now.total_seconds)}"
        return f"step {share:.1%} longer, {seconds}"
