"""Drift and re-split: a plan of one window on the next, split evenly and with replicas weighed anew."""

from dataclasses import replace

import numpy as np

from planner.bench.frame import Instance, Peers, Table, as_method, synthetic_problem
from planner.cost import best_split
from planner.load import LoadProfile
from planner.placement import Placement
from planner.plan import Origin
from planner.planning import make_plan
from planner.problem import Problem, violations
from planner.solvers import Progress, Search

TITLE = (
    "Drift: log-loads follow x' = rho x + sqrt(1 - rho^2) noise; a plan of this window on the next, even "
    "split and weights solved for that window"
)
INSTANCE = Instance("58x256 -> 288 / 32 GPUs", 58, 256, 9, "hgx-h100:4")
RHOS = (0.95, 0.99)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Every placement on the next window; nothing here is a time, so nothing is repeated."""
    del repeats
    rows: list[dict[str, object]] = []
    for number, rho in enumerate(RHOS):
        problem, next_load = drifted(INSTANCE, rho)
        placements = {name: as_method(policy)(problem) for name, policy in peers.policies.items()}
        placements |= {
            "auto": _planned(problem, resplittable=False),
            "auto --resplittable": _planned(problem, resplittable=True),
        }
        for done, (name, placement) in enumerate(placements.items()):
            if progress:
                progress((number + done / len(placements)) / len(RHOS), f"rho {rho}, {name}")
            rows.append(_judged(f"{INSTANCE.name}, rho {rho:g}", name, problem, placement, next_load))
    notes = (
        (
            "balancedness: mean over busiest GPU, summed over layers; 'static' keeps the weights that are "
            "best for this window"
        ),
        "'re-split' knows the next window: no dispatch does better with the placement",
    )
    return Table(TITLE, tuple(rows), notes)


def drifted(instance: Instance, rho: float, seed: int = 0) -> tuple[Problem, LoadProfile]:
    """The instance on its first window, and the load of the next one.

    The logarithm of an expert's load is an AR(1) process with variance sigma^2.
    """
    problem = synthetic_problem(instance, seed)
    log_LE = np.log(problem.load.total_LE.astype(np.float64))
    noise_LE = np.random.default_rng([seed, 1]).normal(0.0, instance.sigma, log_LE.shape)
    mean = float(np.log(1e6))  # of the logarithm of the instance's loads
    next_LE = np.exp(mean + rho * (log_LE - mean) + np.sqrt(1 - rho**2) * noise_LE)
    source = f"{problem.load.source}, the next window at rho {rho:g}"
    return problem, LoadProfile(next_LE.astype(np.int64)[None], problem.load.layer_ids, source)


def _planned(problem: Problem, *, resplittable: bool) -> Placement:
    asked = replace(problem, resplittable=resplittable)
    return make_plan(lambda _: asked, problem.redundant, Search(), Origin()).placement


def _judged(
    instance: str, method: str, problem: Problem, placement: Placement, next_load: LoadProfile
) -> dict[str, object]:
    planned, after = (best_split(problem, placement, load) for load in (problem.load, next_load))
    islands = np.array(after.islands_L)
    return {
        "instance": instance,
        "method": method,
        "planned_balancedness": 1 / planned.even_max_over_mean,
        "next_balancedness": 1 / after.even_max_over_mean,
        "next_static_balancedness": 1 / after.static_max_over_mean,
        "next_resplit_balancedness": 1 / after.resplit_max_over_mean,
        "joined_layers_share": float((islands == 1).mean()),
        "valid": not violations(problem, placement),
    }
