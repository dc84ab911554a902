"""One layer whose replicas may share load in any proportion: what weighted dispatch reaches at best."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.solvers.kernels.packing import pack, replicate
from planner.solvers.methods.cpsat.integers import Answer, Effort, lcm_up_to, run, whole_scale

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def solve_fractional_bound(
    load_E: npt.NDArray[np.integer] | npt.NDArray[np.float64],
    gpus: int,
    slots_per_gpu: int,
    *,
    effort: Effort = Effort(),  # noqa: B008 - frozen
) -> Answer:
    """The placement whose best split has the least loaded busiest GPU.

    `bound` holds for every placement and every split; `proven`: this one meets it. A best split of a given
    placement has some set of GPUs as its bottleneck, so its peak is a load over at most G GPUs: whole loads
    times lcm(1..G) keep it whole. Otherwise whole units lose at most one unit, 2^-44 of the layer's load, and
    the bound is lowered by it.
    """
    load_E = np.asarray(load_E, dtype=np.float64)
    replicas_1E = replicate(load_E[None], gpus * slots_per_gpu, gpus)
    witness_P = pack(load_E[None], replicas_1E, gpus)[0]
    if load_E.max() == 0:
        return Answer(witness_P, proven=True, bound=0.0)
    scale, whole = whole_scale(load_E, lcm_up_to(gpus))
    units = [int(np.floor(load * scale)) for load in load_E]
    model, here = _model(units, witness_P.reshape(gpus, -1))
    solver, found = run(model, effort)
    mean = float(load_E.sum() / gpus)
    if not found:
        return Answer(witness_P, proven=False, bound=mean)
    experts = range(len(load_E))
    held_GS = [[e for e in experts if solver.boolean_value(here[e, g])] for g in range(gpus)]
    slack = 0 if whole else 1
    bound = max((solver.best_objective_bound - slack) / scale, mean * (1 - 1e-12))
    proven = bool(solver.objective_value <= solver.best_objective_bound)
    return Answer(np.array(held_GS).ravel(), proven, bound)


def _model(
    units: list[int], witness_GS: npt.NDArray[np.int64]
) -> tuple["cp_model.CpModel", dict[tuple[int, int], "cp_model.IntVar"]]:
    """The model, from a placement that holds, and for each expert and GPU whether a replica is here."""
    from ortools.sat.python import cp_model

    gpus, slots_per_gpu = witness_GS.shape
    model = cp_model.CpModel()
    cells = [(e, g) for e in range(len(units)) for g in range(gpus)]
    here = {cell: model.new_bool_var("") for cell in cells}
    part = {(e, g): model.new_int_var(0, units[e], "") for e, g in cells}
    peak = model.new_int_var(-(-sum(units) // gpus), sum(units), "peak")
    for e, whole in enumerate(units):
        model.add(sum(part[e, g] for g in range(gpus)) == whole)
        model.add_bool_or(here[e, g] for g in range(gpus))
    for e, g in cells:
        model.add(part[e, g] <= units[e] * here[e, g])
        model.add_hint(here[e, g], int(e in witness_GS[g]))
    for g in range(gpus):
        model.add(sum(here[e, g] for e in range(len(units))) == slots_per_gpu)
        model.add(sum(part[e, g] for e in range(len(units))) <= peak)
    model.minimize(peak)
    return model, here
