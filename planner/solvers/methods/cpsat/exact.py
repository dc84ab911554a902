"""One layer to proven optimality: replica counts and GPUs together, replicas share evenly.

Shapes: E experts, G GPUs, S slots a GPU, P = G * S, K replica counts.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.bounds import load_bound
from planner.solvers.kernels.packing import pack, peaks, replicate
from planner.solvers.kernels.swaps import balance
from planner.solvers.methods.cpsat import patterns
from planner.solvers.methods.cpsat.integers import Answer, Effort, lcm_up_to, run, whole_scale

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Loads = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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

    Whole loads are solved exactly; others are rounded down to 2^-44 of the layer's load, which keeps the bound valid. `proven` says that the bound
    meets the answer within 1e-9. Starts from greedy and swaps, or from `start_P`, and never answers worse than that.
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
    if node_G is None and patterns.fits(len(load_E), slots_per_gpu):
        least = float(load_bound(load_E[None], gpus, slots_per_gpu, even=True).load_L[0])
        model, gpus_of = patterns.build(load_E, counts, scale, answer_P.reshape(gpus, -1), least)
        solver, found = run(model, effort)
        found_P = np.array(
            [
                pattern
                for pattern, number in gpus_of.items()
                for _ in range(solver.value(number) if found else 0)
            ]
        ).ravel()
    else:
        model, variables, _ = build(load_E, gpus, slots_per_gpu, counts, scale, node_G)
        _hint(model, variables, _ordered(load_E, answer_P, gpus, node_G).reshape(gpus, -1))
        solver, found = run(model, effort)
        held = [entry for entry, variable in variables.items() if found and solver.boolean_value(variable)]
        found_P = np.array([e for e, _, _ in sorted(held, key=lambda entry: entry[2])])
    if not found:  # also where CP-SAT says infeasible: the start is a witness that it is not
        return Answer(answer_P, proven=False, bound=float(load_E.sum() / gpus))
    value = float(peaks(load_E[None], found_P[None], gpus)[0])
    if value < start:
        answer_P, start = found_P, value
    bound = min(solver.best_objective_bound / scale, start)
    return Answer(answer_P, start <= bound * (1 + 1e-9), bound)


def _counts(load_E: Loads, slots: int, limits: tuple[int, int], peak: float) -> list[range]:
    """Replica counts of each expert that can still matter: replicas no heavier than the peak at hand, and slots left for the others' fewest."""
    fewest_E = np.clip(np.ceil(load_E / peak - 1e-9), *limits).astype(int)
    spare = slots - int(fewest_E.sum())
    return [range(int(fewest), min(limits[1], int(fewest) + spare) + 1) for fewest in fewest_E]


def build(
    load_E: Loads, gpus: int, slots_per_gpu: int, counts: list[range], scale: float, node_G: Ints | None
) -> tuple["cp_model.CpModel", dict[tuple[int, int, int], "cp_model.IntVar"], "cp_model.IntVar"]:
    """The model, its variables [expert, count, GPU] (expert has `count` replicas and one of them is here), and the peak it minimises, in whole units."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    units = {(e, k): int(np.floor(load_E[e] * scale / k)) for e, some in enumerate(counts) for k in some}
    here = {(e, k, g): model.new_bool_var("") for e, k in units for g in range(gpus)}
    chosen = {entry: model.new_bool_var("") for entry in units}
    for e, some in enumerate(counts):
        model.add_exactly_one(chosen[e, k] for k in some)
        for k in some:
            model.add(sum(here[e, k, g] for g in range(gpus)) == k * chosen[e, k])
            if node_G is not None:
                _spread(model, [here[e, k, g] for g in range(gpus)], k, node_G)
    loads = [sum(units[e, k] * here[e, k, g] for e, k in units) for g in range(gpus)]
    total = int(np.floor(load_E * scale).sum())
    peak = model.new_int_var(0, total, "peak")
    for g in range(gpus):
        model.add(sum(here[e, k, g] for e, k in units) == slots_per_gpu)
        model.add(loads[g] <= peak)
        if g + 1 < gpus and (node_G is None or node_G[g] == node_G[g + 1]):
            model.add(loads[g] >= loads[g + 1])  # GPUs are alike: only one order of them
    for e in range(len(load_E) - 1):
        twin = next((other for other in range(e + 1, len(load_E)) if load_E[other] == load_E[e]), None)
        if twin is not None:  # experts of equal load are alike too
            model.add(
                sum(k * chosen[e, k] for k in counts[e]) >= sum(k * chosen[twin, k] for k in counts[twin])
            )
    model.minimize(peak)
    return model, here, peak


def _spread(model: "cp_model.CpModel", here: list["cp_model.IntVar"], count: int, node_G: Ints) -> None:
    """No node with more than its equal share of the copies."""
    nodes = int(node_G.max()) + 1
    for node in range(nodes):
        model.add(
            sum(variable for variable, at in zip(here, node_G, strict=True) if at == node)
            <= -(-count // nodes)
        )


def _ordered(
    load_E: Loads, expert_P: npt.NDArray[np.integer], gpus: int, node_G: Ints | None
) -> npt.NDArray[np.integer]:
    """The same placement with GPUs (of each node) in falling order of load, as the model has them."""
    expert_GS = expert_P.reshape(gpus, -1)
    replicas_E = np.bincount(expert_P, minlength=len(load_E))
    load_G = (load_E / replicas_E)[expert_GS].sum(axis=1)
    return expert_GS[np.lexsort((-load_G, np.zeros(gpus) if node_G is None else node_G))].ravel()


def _hint(
    model: "cp_model.CpModel",
    variables: dict[tuple[int, int, int], "cp_model.IntVar"],
    expert_GS: npt.NDArray[np.integer],
) -> None:
    replicas_E = np.bincount(expert_GS.ravel())
    held = {(g, int(e)) for g, row in enumerate(expert_GS) for e in row}
    for (e, k, g), variable in variables.items():
        model.add_hint(variable, int(k == replicas_E[e] and (g, e) in held))
