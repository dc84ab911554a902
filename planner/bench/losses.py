"""Losses: what one lost GPU, or node, leaves of a plan made to survive it, beside the peers' placements.

All are in the same memory.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.bench.frame import Instance, Peers, Table, as_method, each, synthetic_problem
from planner.cost import AfterLoss, after_loss
from planner.placement import Placement
from planner.problem import Problem, Survival, loss_sets, lost_experts, survives, violations
from planner.solvers import Progress, disperse, find_method

TITLE = (
    "After the loss of one GPU or node: synthetic lognormal loads, survivors share evenly; max/mean of the "
    "GPUs left, worst loss"
)
NOTE = "'lost_share': experts of all layers without a slot after the worst loss"
INSTANCES = (
    Instance("58x256 -> 512 / 32 GPUs", 58, 256, 16, "hgx-h100:4"),
    Instance("58x256 -> 544 / 32 GPUs", 58, 256, 17, "hgx-h100:4"),
)
LOSSES = (Survival(gpus=1), Survival(node=True))
Run = tuple[str, Callable[[Problem], Placement]]


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Every method once on every instance and loss.

    Peers know no losses, so the same placement is judged under each.
    """
    del repeats
    others: list[Run] = [(name, as_method(policy)) for name, policy in peers.policies.items()]
    ours: list[Run] = [("refine", find_method("refine")), ("refine, dispersed", _dispersed)]
    questions = [(instance, survive) for instance in INSTANCES for survive in LOSSES]
    rows = []
    for instance, survive in each(questions, progress, _name):
        problem = replace(synthetic_problem(instance), survive=survive)
        rows += [_row(_name((instance, survive)), name, problem, solve) for name, solve in others + ours]
    return Table(TITLE, tuple(rows), (NOTE,))


def _name(question: tuple[Instance, Survival]) -> str:
    return f"{question[0].name}, {question[1]}"


def _dispersed(problem: Problem) -> Placement:
    """What `moeplan solve --method refine --survive` does."""
    survive, refined = problem.survive, find_method("refine")(problem)
    assert survive is not None  # every question of this study asks for it
    place_G, node_G = survive.place_G(problem.node_G), problem.node_G if survive.node else None
    return replace(refined, expert_LP=disperse(problem.shares_LE, refined.expert_LP, place_G, node_G))


def _row(
    instance: str, name: str, problem: Problem, solve: Callable[[Problem], Placement]
) -> dict[str, object]:
    survive = problem.survive
    assert survive is not None
    began = time.perf_counter()
    placement = solve(problem)
    seconds = time.perf_counter() - began
    kept = survives(survive, problem, placement)
    found = after_loss(problem, placement, survive) if kept else None
    return {
        "instance": instance,
        "method": name,
        "seconds": seconds,
        "lost_share": 0.0 if kept else _lost_share(problem, placement, survive),
        "max_over_mean": found.before.max_over_mean if found else None,
        "max_over_mean_after": found.worst_balance.same_batch.max_over_mean if found else None,
        "tokens_after_share": _share(found) if found else None,
        "valid": not violations(problem, placement),
    }


def _share(found: AfterLoss) -> float:
    """Tokens a second through the expert layers after the worst loss, of those before.

    Every GPU that is left has its own batch.
    """
    after, before = found.slowest.same_batch, found.before
    return after.gpus / before.gpus * before.total_seconds / after.total_seconds


def _lost_share(problem: Problem, placement: Placement, survive: Survival) -> float:
    """Of all experts of all layers, after the worst loss."""
    experts = problem.model.experts
    counts = []
    for gpus in loss_sets(survive, problem.node_G):
        lost_G = np.isin(np.arange(problem.gpus), gpus)
        counts.append(sum(len(lost_experts(expert_P, lost_G, experts)) for expert_P in placement.expert_LP))
    return max(counts) / (experts * len(placement.expert_LP))
