"""One layer to proven optimality: replica counts and GPUs together, replicas share evenly.

Shapes: E experts, G GPUs, S slots a GPU, P = G * S, K replica counts.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.bounds import load_bound
from planner.solvers.kernels.packing import Ints, Loads, pack, peaks, replicate
from planner.solvers.kernels.swaps import balance
from planner.solvers.methods.cpsat import by_replica, patterns
from planner.solvers.methods.cpsat.integers import Answer, Effort, lcm_up_to, run, whole_scale


def solve_exact(
    load_E: npt.NDArray[np.integer] | Loads,
    gpus: int,
    slots_per_gpu: int,
    *,
    least_per_expert: int = 1,
    most_per_expert: int | None = None,
    node_G: Ints | None = None,
    start_P: npt.NDArray[np.integer] | None = None,
    effort: Effort = Effort(),  # noqa: B008 - frozen
) -> Answer:
    """The placement with the least loaded busiest GPU, at most one copy of an expert on a GPU.

    Whole loads are solved exactly; others are rounded down to 2^-44 of the layer's load, which keeps the
    bound valid. `proven` says that the bound meets the answer within 1e-9. Starts from greedy and swaps, or
    from `start_P`, and never answers worse than that.
    """
    load_E = np.asarray(load_E, dtype=np.float64)
    most = min(most_per_expert or gpus, gpus)
    if start_P is None:
        replicas_1E = replicate(load_E[None], gpus * slots_per_gpu, most, least_per_expert=least_per_expert)
        start_P = balance(load_E[None], pack(load_E[None], replicas_1E, gpus, node_G), gpus, node_G=node_G)[0]
    start = float(peaks(load_E[None], start_P[None], gpus)[0])
    if load_E.max() == 0:
        return Answer(np.asarray(start_P, dtype=np.int64), proven=True, bound=0.0)
    counts = _counts(load_E, gpus * slots_per_gpu, (least_per_expert, most), start)
    scale, _ = whole_scale(load_E, lcm_up_to(max(max(some) for some in counts)))
    answer_P = np.asarray(start_P, dtype=np.int64)
    start_GS = answer_P.reshape(gpus, -1)
    if node_G is None and patterns.fits(len(load_E), slots_per_gpu):
        found = _by_pattern(load_E, counts, scale, start_GS, effort)
    else:
        found = _by_replica(load_E, counts, scale, start_GS, node_G, effort)
    if found is None:  # also where CP-SAT says infeasible: the start is a witness that it is not
        return Answer(answer_P, proven=False, bound=float(load_E.sum() / gpus))
    value = float(peaks(load_E[None], found.expert_P[None], gpus)[0])
    if value < start:
        answer_P, start = found.expert_P, value
    bound = min(found.bound_units / scale, start)
    return Answer(answer_P, start <= bound * (1 + 1e-9), bound)


class _Found(NamedTuple):
    expert_P: Ints
    bound_units: float


def _by_pattern(
    load_E: Loads, counts: list[range], scale: float, start_GS: Ints, effort: Effort
) -> _Found | None:
    least = float(load_bound(load_E[None], *start_GS.shape, even=True).load_L[0])
    model, gpus_of = patterns.build(load_E, counts, scale, start_GS, least)
    solver, found = run(model, effort)
    if not found:
        return None
    rows = [pattern for pattern, number in gpus_of.items() for _ in range(solver.value(number))]
    return _Found(np.array(rows).ravel(), solver.best_objective_bound)


def _by_replica(
    load_E: Loads, counts: list[range], scale: float, start_GS: Ints, node_G: Ints | None, effort: Effort
) -> _Found | None:
    replicas = by_replica.build(load_E, counts, scale, start_GS, node_G)
    solver, found = run(replicas.model, effort)
    if not found:
        return None
    held = [entry for entry, variable in replicas.here.items() if solver.boolean_value(variable)]
    held.sort(key=lambda entry: entry[2])
    return _Found(np.array([e for e, _, _ in held]), solver.best_objective_bound)


def _counts(load_E: Loads, slots: int, limits: tuple[int, int], peak: float) -> list[range]:
    """Replica counts of each expert that can still matter.

    Replicas are no heavier than the peak at hand, and slots are left for the others' fewest.
    """
    fewest_E = np.clip(np.ceil(load_E / peak - 1e-9), *limits).astype(int)
    spare = slots - int(fewest_E.sum())
    return [range(int(fewest), min(limits[1], int(fewest) + spare) + 1) for fewest in fewest_E]
