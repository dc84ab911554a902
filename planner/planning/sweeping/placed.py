"""What was placed on the machine of one group, and what it costs: worked out once, whichever points ask."""

from collections.abc import Hashable
from dataclasses import replace

from planner.cost import Cost, cost, sliced_cost
from planner.engines import default_placement
from planner.load import LoadProfile
from planner.placement import Placement
from planner.planning.groups import with_full_fabric, with_nics_at
from planner.planning.solving import quick_placement
from planner.planning.sweeping.request import METHOD
from planner.planning.sweeping.services import follows_a_plan
from planner.problem import Problem
from planner.solvers import Search, Workforce, in_expectation
from planner.topology import Topology

SEARCH = Search(METHOD, workforce=Workforce(1))  # points share out the processes, not layers


class Placed:
    """Of one load and its held-out windows. A fast method looks at load, slots and rule alone, and the cost
    of expert layers at the step: points that share these share what was found.
    """

    def __init__(self, topology: Topology, search: Search = SEARCH) -> None:
        self.topology, self.search = topology, search
        fabric, leaves = topology.fabric, topology.node_count > 1
        thin = leaves and max(fabric.oversubscription, fabric.pod_oversubscription) > 1
        self.nics_halved = with_nics_at(topology, 0.5) if leaves else None
        self.full_fabric = with_full_fabric(topology) if thin else None
        self._placements: dict[Hashable, Placement] = {}
        self._costs: dict[Hashable, Cost] = {}

    def placement(self, problem: Problem, engine: str | None) -> Placement:
        """The engine's default placement where it would serve no other."""
        key = (problem.redundant, problem.replica_rule, engine)
        if key not in self._placements:
            own = engine is not None and not follows_a_plan(engine, problem.model)
            default = default_placement(engine, problem)
            self._placements[key] = default if own else quick_placement(problem, self.search, engine)
        return self._placements[key]

    def fitted(self, problem: Problem, engine: str | None) -> Cost:
        """On the fitted load, under a rule that costs less to evaluate and has the same mean."""
        return self._cost(in_expectation(problem), problem, engine, None, "fitted")

    def judged(
        self,
        problem: Problem,
        engine: str | None,
        held_out: LoadProfile | None,
        machine: Topology | None = None,
    ) -> Cost:
        """On held-out load where there is some; on the group's machine changed where one is given."""
        changed = problem if machine is None else replace(problem, topology=machine)
        return self._cost(changed, problem, engine, held_out, "judged", machine and id(machine))

    def sliced(self, problem: Problem, held_out: LoadProfile | None, machine: Topology | None = None) -> Cost:
        """The same without expert parallelism: nothing is placed."""
        return sliced_cost(problem if machine is None else replace(problem, topology=machine), held_out)

    def _cost(
        self, asked: Problem, problem: Problem, engine: str | None, load: LoadProfile | None, *how: Hashable
    ) -> Cost:
        step = replace(
            problem.workload, attention_tp=1, prompt_tokens=1, output_tokens=1
        )  # no expert's concern
        key = (problem.redundant, problem.replica_rule, engine, step, *how)
        if key not in self._costs:
            self._costs[key] = cost(asked, self.placement(problem, engine), load)
        return self._costs[key]
