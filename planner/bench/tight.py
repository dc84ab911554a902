"""Small and tight: 24 layers of 5 to 8 experts on 2 to 4 GPUs, against the proven optimum.

There a greedy choice of replicas costs most.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from planner.bench.balance import busiest_L
from planner.bench.frame import Peers, Table, as_method, each, synthetic_model
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, Workload, violations
from planner.solvers import Progress, find_method, solve_with_bounds
from planner.topology import Topology, read_topology

TITLE = (
    "Small and tight: 24 layers of 5 to 8 experts, lognormal(0, 1.2), even split, above the optimum that "
    "CP-SAT proves"
)
SIGMA = 1.2
RULE_NOTE = (
    "peers may put two replicas of an expert on one GPU, which our rules forbid: such an answer does not "
    "count as valid"
)
Run = tuple[str, Callable[[Problem], Placement]]

PROVEN = 1e-9  # peak above bound, relative
METHODS = ("greedy", "refine")


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """A row for each method over all instances, each a problem of its own.

    One run of each: the figures are gaps, the times only show their size.
    """
    del repeats
    problems = tight_problems()
    bounds: list[float] = []

    def solve_and_prove(problem: Problem) -> Placement:
        solved = solve_with_bounds(problem)
        bounds.append(float(solved.bound_L[0]))
        return solved.placement

    others: list[Run] = [(name, as_method(policy)) for name, policy in peers.policies.items()]
    ours: list[Run] = [(name, find_method(name)) for name in METHODS]
    runs = [("auto", solve_and_prove), *others, *ours]
    rows = []
    for name, solve in each(runs, progress, lambda run: run[0]):
        began = time.perf_counter()
        found = [solve(problem) for problem in problems]
        seconds = time.perf_counter() - began
        rows.append(_row(name, seconds, problems, found, np.array(bounds)))
    notes = (_proof_note(len(problems), int(str(rows[0]["optimal_count"]))), RULE_NOTE)
    return Table(TITLE, tuple(rows), notes)


def _proof_note(problems: int, proven: int) -> str:
    rest = problems - proven
    if not rest:
        return f"the optimum is proven for all {proven}"
    return f"{rest} of {problems} are only bounded: their figures are above the bound"


def _row(
    name: str, seconds: float, problems: list[Problem], found: list[Placement], bound: npt.NDArray[np.float64]
) -> dict[str, object]:
    pairs = list(zip(problems, found, strict=True))
    gap = np.array([busiest_L(problem, placement)[0] for problem, placement in pairs]) / bound - 1
    gap[np.abs(gap) <= PROVEN] = 0.0
    return {
        "instance": f"{len(problems)} tight",
        "method": name,
        "seconds": seconds,
        "mean_gap_share": float(gap.mean()),
        "worst_gap_share": float(gap.max()),
        "optimal_count": int((gap == 0).sum()),
        "valid_count": sum(not violations(problem, placement) for problem, placement in pairs),
    }


def tight_problems() -> list[Problem]:
    """One layer each: 5 to 8 experts, 2 to 4 GPUs, and two numbers of slots a GPU.

    The fewest that leave some redundant, and one more. The seed is the number in this list.
    """
    return [_problem(experts, gpus, slots, seed) for seed, (experts, gpus, slots) in enumerate(_shapes())]


def _shapes() -> Iterator[tuple[int, int, int]]:
    for experts in range(5, 9):
        for gpus in range(2, 5):
            fewest = experts // gpus + 1
            yield experts, gpus, fewest
            yield experts, gpus, fewest + 1


def _problem(experts: int, gpus: int, slots_per_gpu: int, seed: int) -> Problem:
    model = synthetic_model("synthetic", 1, experts, 2, hidden=64, expert_intermediate=64)
    drawn_E = np.random.default_rng(seed).lognormal(0.0, SIGMA, experts) * 1e4
    tokens_E = np.maximum(drawn_E, 1).astype(np.int64)
    load = LoadProfile(tokens_E[None, None], (0,), f"lognormal(0, {SIGMA}), seed {seed}")
    return Problem(_machine(gpus), model, load, Workload(), slots_per_gpu)


def _machine(gpus: int) -> Topology:
    return read_topology(f"hgx-h100:1x{gpus}")
