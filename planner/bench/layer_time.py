"""Layer time: predicted seconds of MoE layers, ours against the engines' balancers, and what bounds it.

On held-out sequences of real traces.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from planner.bench.coactivation import ENGINES, placed_by_engine
from planner.bench.frame import Peers, Policy, Table
from planner.bench.traces import ABSENT, DOMAINS, TOKENS_PER_RANK, traced_problem, traces_found
from planner.cost import cost
from planner.load import LoadProfile
from planner.plan import Origin
from planner.planning import make_plan, problem_of_r
from planner.problem import Problem, violations
from planner.solvers import Progress, Search

TITLE = "Layer time: DeepSeek-V2-Lite, R = 16, every sixth layer; predicted seconds on held-out sequences"
MACHINES = ("hgx-h100:2x4", "hgx-h100:4x2", "hgx-h100:8x2")
REDUNDANT, EVERY = 16, 6
NOTES = (
    (
        "of_eplb: of the same engine's balancer under the same rule; network_share: dispatch and combine, "
        "start-up included. node: 4,096 tokens a rank; slot: 128."
    ),
    (
        "bound_share: start-up and perfectly balanced compute, which no placement avoids, of the time "
        "predicted: what is above it is messages and imbalance."
    ),
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Both traces, three machines, both transports, under each engine's rule."""
    del repeats
    if not traces_found():
        return Table(TITLE, (), (ABSENT,))
    cases = list(product(DOMAINS, MACHINES, TOKENS_PER_RANK))
    rows: list[dict[str, object]] = []
    for number, case in enumerate(cases):
        for half, (engine, rule) in enumerate(ENGINES.items()):
            if progress:
                progress((number + half / len(ENGINES)) / len(cases), " ".join((*case, rule)))
            problem, held_out = traced_problem(case[0], case[1], REDUNDANT, rule, case[2], EVERY)
            rows += _rows(", ".join((*case, rule)), engine, problem, held_out, peers.policies)
    return Table(TITLE, tuple(rows), NOTES)


def _rows(
    instance: str, engine: str, problem: Problem, held_out: LoadProfile, policies: Mapping[str, Policy]
) -> Iterator[dict[str, object]]:
    found = placed_by_engine(engine, problem, policies)
    question, rule = (problem.model, problem.topology, problem.load, problem.workload), problem.replica_rule
    plan = make_plan(problem_of_r(*question, replica_rule=rule), REDUNDANT, Search(), Origin(), held_out)
    found["auto"] = plan.placement
    first = cost(problem, next(iter(found.values())), held_out).total_seconds
    for name, placement in found.items():
        priced = cost(problem, placement, held_out)
        network_seconds = float((priced.dispatch_seconds_L + priced.combine_seconds_L).sum())
        yield {
            "instance": instance,
            "method": name,
            "seconds": priced.total_seconds,
            "of_eplb": priced.total_seconds / first if len(found) > 1 else None,
            "max_over_mean": priced.max_over_mean,
            "cross_node_share": priced.cross_node_share,
            "network_share": network_seconds / priced.total_seconds,
            "bound_share": plan.bound_seconds / priced.total_seconds,
            "bottleneck": priced.bottleneck,
            "valid": not violations(problem, placement),
        }
