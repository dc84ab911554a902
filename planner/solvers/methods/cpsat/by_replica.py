"""One layer replica by replica: a variable says that an expert has so many replicas and one is on this GPU.

Shapes: E experts, G GPUs, S slots a GPU, P = G * S.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from planner.solvers.kernels.packing import Ints, Loads

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Variables = dict[tuple[int, int, int], "cp_model.IntVar"]  # by (expert, count, GPU)


class Replicas(NamedTuple):
    """The model, and for each expert, count and GPU whether it has so many replicas and one is here."""

    model: "cp_model.CpModel"
    here: Variables


def build(load_E: Loads, counts: list[range], scale: float, start_GS: Ints, node_G: Ints | None) -> Replicas:
    """The model, which minimises the peak in whole units, from a placement that holds.

    `counts`: the replica counts of each expert that matter. With `node_G` replicas spread over nodes.
    """
    from ortools.sat.python import cp_model

    gpus, slots_per_gpu = start_GS.shape
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
    peak = model.new_int_var(0, int(np.floor(load_E * scale).sum()), "peak")
    for g in range(gpus):
        model.add(sum(here[e, k, g] for e, k in units) == slots_per_gpu)
        model.add(loads[g] <= peak)
        if g + 1 < gpus and (node_G is None or node_G[g] == node_G[g + 1]):
            model.add(loads[g] >= loads[g + 1])  # GPUs are alike: only one order of them
    replicas = [sum(k * chosen[e, k] for k in some) for e, some in enumerate(counts)]
    for e, twin in _twins(load_E):  # experts of equal load are alike too
        model.add(replicas[e] >= replicas[twin])
    model.minimize(peak)
    _hint(model, here, load_E, start_GS, node_G)
    return Replicas(model, here)


def _twins(load_E: Loads) -> list[tuple[int, int]]:
    """Each expert with the next one of the same load, where there is one."""
    experts = range(len(load_E))
    alike = ((e, [other for other in experts[e + 1 :] if load_E[other] == load_E[e]]) for e in experts)
    return [(e, others[0]) for e, others in alike if others]


def _spread(model: "cp_model.CpModel", here: list["cp_model.IntVar"], count: int, node_G: Ints) -> None:
    """No node with more than its equal share of the copies."""
    nodes = int(node_G.max()) + 1
    for node in range(nodes):
        on_node = [variable for variable, at in zip(here, node_G, strict=True) if at == node]
        model.add(sum(on_node) <= -(-count // nodes))


def _hint(
    model: "cp_model.CpModel", here: Variables, load_E: Loads, start_GS: Ints, node_G: Ints | None
) -> None:
    """Start from this placement, with GPUs (of each node) in falling order of load, as the model has them."""
    replicas_E = np.bincount(start_GS.ravel(), minlength=len(load_E))
    load_G = (load_E / replicas_E)[start_GS].sum(axis=1)
    node = np.zeros(len(start_GS)) if node_G is None else node_G
    held = {(g, int(e)) for g, row in enumerate(start_GS[np.lexsort((-load_G, node))]) for e in row}
    for (e, k, g), variable in here.items():
        model.add_hint(variable, int(k == replicas_E[e] and (g, e) in held))
