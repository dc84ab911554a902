"""Traffic without a trace: assignments that cross nodes under near-replica rules, and the least that must."""

import numpy as np
import numpy.typing as npt

from planner.bench.frame import Instance, Peers, Table, as_method, each, synthetic_problem
from planner.cost import cost
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.solvers import Progress, find_method

TITLE = "Traffic: share of assignments that cross nodes, lognormal(0, 1) loads, uniform sources"
INSTANCES = (
    Instance("256 -> 320 / 16 GPUs, 2 nodes", 8, 256, 20, "hgx-h100:2"),
    Instance("256 -> 288 / 32 GPUs, 4 nodes", 8, 256, 9, "hgx-h100:4"),
    Instance("256 -> 320 / 32 GPUs, 4 nodes", 8, 256, 10, "hgx-h100:4"),
    Instance("256 -> 320 / 64 GPUs, 8 nodes", 8, 256, 5, "hgx-h100:8"),
)
METHODS = ("greedy", "refine", "affinity")
NOTES = (
    (
        "bound: R replicas can at most put a copy of the hottest experts on every node; an expert with "
        "copies on c of N nodes crosses for 1 - c/N of its load."
    ),
    "balancedness: mean / max GPU load; seconds_of_refine: predicted step (transport slot) against refine's.",
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Peers under even split and with the same node first, ours with the same node first."""
    del repeats
    rows: list[dict[str, object]] = []
    for instance in each(INSTANCES, progress, lambda instance: instance.name):
        problem = synthetic_problem(instance, replica_rule="nearest")
        refined = cost(problem, find_method("refine")(problem)).total_seconds
        for name, policy in peers.policies.items():
            if not name.endswith("_vec"):
                placement = as_method(policy)(problem)
                rows += [
                    _row(instance.name, f"{name}, {rule}", problem.with_rule(rule), placement, refined)
                    for rule in ("even", "nearest")
                ]
        rows += [
            _row(instance.name, f"{name}, nearest", problem, find_method(name)(problem), refined)
            for name in METHODS
        ]
    return Table(TITLE, tuple(rows), NOTES)


def _row(
    instance: str, method: str, problem: Problem, placement: Placement, refined_seconds: float
) -> dict[str, object]:
    priced = cost(problem, placement)
    return {
        "instance": instance,
        "method": method,
        "cross_node_share": priced.cross_node_share,
        "bound_cross_node_share": float(least_crossing_L(problem).mean()),
        "balancedness": 1.0 / priced.max_over_mean,
        "seconds_of_refine": priced.total_seconds / refined_seconds,
        "valid": not violations(problem, placement),
    }


def least_crossing_L(problem: Problem) -> npt.NDArray[np.float64]:
    """No placement has a smaller cross-node share with uniform sources and nodes of equal size.

    Under any rule that ignores what a token holds. Each replica saves at most its expert's load / N, and the
    N - 1 first ones of an expert only.
    """
    nodes = problem.topology.node_count
    sorted_LE = -np.sort(-problem.shares_LE, axis=1)
    saved_LR = np.repeat(sorted_LE, nodes - 1, axis=1)[:, : problem.redundant] / nodes
    return np.asarray((nodes - 1) / nodes - saved_LR.sum(axis=1))
