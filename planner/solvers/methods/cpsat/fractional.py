"""One layer with replicas that may share their expert's load in any proportion: what weighted dispatch could reach at best."""

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import pack, replicate
from planner.solvers.methods.cpsat.integers import Answer, Effort, lcm_up_to, run, whole_scale


def solve_fractional_bound(
    load_E: npt.NDArray[np.integer] | npt.NDArray[np.float64],
    gpus: int,
    slots_per_gpu: int,
    *,
    effort: Effort = Effort(),  # noqa: B008 - frozen
) -> Answer:
    """The placement whose best split has the least loaded busiest GPU. `bound` holds for every placement and every split; `proven`: this one meets it.

    A best split of a given placement has some set of GPUs as its bottleneck, so its peak is a load over at most G GPUs: whole loads times
    lcm(1..G) keep it whole. Otherwise whole units lose at most one unit, 2^-44 of the layer's load, and the bound is lowered by it.
    """
    from ortools.sat.python import cp_model

    load_E = np.asarray(load_E, dtype=np.float64)
    replicas_1E = replicate(load_E[None], gpus * slots_per_gpu, gpus)
    witness_P = pack(load_E[None], replicas_1E, gpus)[0]
    if load_E.max() == 0:
        return Answer(witness_P, proven=True, bound=0.0)
    scale, whole = whole_scale(load_E, lcm_up_to(gpus))
    units_E = [int(np.floor(load * scale)) for load in load_E]
    model = cp_model.CpModel()
    cells = [(e, g) for e in range(len(load_E)) for g in range(gpus)]
    here = {cell: model.new_bool_var("") for cell in cells}
    part = {(e, g): model.new_int_var(0, units_E[e], "") for e, g in cells}
    peak = model.new_int_var(-(-sum(units_E) // gpus), sum(units_E), "peak")
    for e, units in enumerate(units_E):
        model.add(sum(part[e, g] for g in range(gpus)) == units)
        model.add_bool_or(here[e, g] for g in range(gpus))
    for e, g in cells:
        model.add(part[e, g] <= units_E[e] * here[e, g])
        model.add_hint(here[e, g], int(e in witness_P.reshape(gpus, -1)[g]))
    for g in range(gpus):
        model.add(sum(here[e, g] for e in range(len(load_E))) == slots_per_gpu)
        model.add(sum(part[e, g] for e in range(len(load_E))) <= peak)
    model.minimize(peak)
    solver, found = run(model, effort)
    if not found:
        return Answer(witness_P, proven=False, bound=float(load_E.sum() / gpus))
    expert_P = np.array(
        [[e for e in range(len(load_E)) if solver.boolean_value(here[e, g])] for g in range(gpus)]
    ).ravel()
    slack = 0 if whole else 1
    bound = max((solver.best_objective_bound - slack) / scale, float(load_E.sum() / gpus) * (1 - 1e-12))
    return Answer(expert_P, bool(solver.objective_value <= solver.best_objective_bound), bound)
