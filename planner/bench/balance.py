"""Balance alone: our fast methods and vLLM's own policy on fixed synthetic instances, even split."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.bench.frame import Instance, Peers, Table, as_method, each, synthetic_problem
from planner.bounds import load_bound
from planner.placement import Placement
from planner.problem import Problem, violations
from planner.solvers import Progress, find_method

TITLE = (
    "Balance and time: synthetic lognormal loads, even split; gap = summed busiest-GPU load above the lower "
    "bound"
)
METHODS = ("greedy", "refine")
INSTANCES = (
    Instance("58x256 -> 288 / 32 GPUs", 58, 256, 9, "hgx-h100:4"),
    Instance("26x64 -> 288 / 32 GPUs", 26, 64, 9, "hgx-h100:4"),
    Instance("60x384 -> 448 / 64 GPUs", 60, 384, 7, "hgx-h100:8"),
)


Run = tuple[str, Callable[[Problem], Placement]]


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Every method on every instance, interleaved; the median time of the repeats."""
    others = [(name, as_method(policy)) for name, policy in peers.policies.items()]
    runs: list[Run] = [*others, *((name, _ours(name)) for name in METHODS)]
    instances = each(INSTANCES, progress, lambda instance: instance.name)
    return Table(TITLE, tuple(row for instance in instances for row in _measured(instance, runs, repeats)))


def _ours(name: str) -> Callable[[Problem], Placement]:
    solve = find_method(name)
    return lambda problem: solve(problem, seed=0)


def _measured(instance: Instance, runs: list[Run], repeats: int) -> Iterator[dict[str, object]]:
    problem = synthetic_problem(instance)
    bound_L = load_bound(problem.shares_LE, problem.gpus, problem.slots_per_gpu, even=True).load_L
    found, seconds = _timed(problem, runs, repeats)
    first = runs[0][0]
    for name, _ in runs:
        median = seconds[name]
        yield {
            "instance": instance.name,
            "method": name,
            "seconds": median,
            f"of_{first}": median / seconds[first],  # the first peer's, where there is one
            "gap_share": float(busiest_L(problem, found[name]).sum() / bound_L.sum() - 1),
            "valid": not violations(problem, found[name]),
        }


def _timed(problem: Problem, runs: list[Run], repeats: int) -> tuple[dict[str, Placement], dict[str, float]]:
    """What each method finds, and the median of its seconds."""
    seconds: dict[str, list[float]] = {name: [] for name, _ in runs}
    found: dict[str, Placement] = {}
    for _ in range(repeats):  # interleaved, so that a slow moment of the machine strikes all
        for name, solve in runs:
            asked = replace(problem)  # its own, for a method may keep what it found for the last one
            assert asked.shares_LE is not None  # worked out before the clock starts, for all alike
            began = time.perf_counter()
            found[name] = solve(asked)
            seconds[name].append(time.perf_counter() - began)
    return found, {name: float(np.median(times)) for name, times in seconds.items()}


def busiest_L(problem: Problem, placement: Placement) -> npt.NDArray[np.float64]:
    """Load of the busiest GPU of each layer under even split, recomputed from the placement alone."""
    each_LE = problem.shares_LE / placement.replicas_LE(problem.model.experts)
    value_LP = np.take_along_axis(each_LE, placement.expert_LP, axis=1)
    return np.asarray(value_LP.reshape(len(each_LE), problem.gpus, -1).sum(axis=2).max(axis=1))
