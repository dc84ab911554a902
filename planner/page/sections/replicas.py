"""Replica map: which experts have several slots, and which expert sits in which slot of which GPU."""

import numpy as np

from planner.page.document import paragraphs
from planner.page.html import Content, Html
from planner.page.tables import fold, folded_table, table_of
from planner.page.told import Told

TITLE = "Replica map"
SHOWN_EXPERTS = 8  # of a layer, by replicas


def section(told: Told) -> Content:
    problem = told.problem
    slots = f"{problem.slots_per_gpu} slots on each of {problem.gpus} GPUs, {problem.model.experts} experts"
    said = f"{slots}: R = {problem.redundant}."
    if not problem.redundant:
        said += " Every expert of a layer has one slot."
    layers = [_layer(told, row) for row in told.worst_first]
    return [
        paragraphs(
            said, "Each layer's slots are below, worst layers first; * marks an expert with replicas."
        ),
        _replicated(told) if problem.redundant else None,
        fold(f"slots of all {len(layers)} layers", layers),
    ]


def _replicated(told: Told) -> Html:
    """The experts with most replicas of each layer, and where these are."""
    replicas_LE = told.placement.replicas_LE(told.problem.model.experts)
    gpu_P, rows = told.placement.gpu_P, []
    for row in told.worst_first:
        count_E, expert_P = replicas_LE[row], told.placement.expert_LP[row]
        order = np.lexsort((np.arange(len(count_E)), -count_E))
        several = [int(expert) for expert in order if count_E[expert] > 1]
        told_of = [
            f"{expert} ({count_E[expert]} x: GPU {', '.join(map(str, gpu_P[expert_P == expert]))})"
            for expert in several[:SHOWN_EXPERTS]
        ]
        if len(several) > SHOWN_EXPERTS:
            told_of.append(f"and {len(several) - SHOWN_EXPERTS} more")
        counts = [
            f"{int((count_E == count).sum())} x {count}"
            for count in sorted(set(count_E[count_E > 1].tolist()))
        ]
        rows.append(
            [str(told.layer_ids[row]), len(several), ", ".join(counts) or "-", "; ".join(told_of) or "-"]
        )
    names = ("layer", "with replicas", "experts x slots", "most replicated")
    return folded_table(names, rows, "Experts with several slots", words=(0, 2, 3))


def _layer(told: Told, row: int) -> Html:
    """A fold: the experts on each GPU."""
    expert_P, layer = told.placement.expert_LP[row], told.layer_ids[row]
    count_E = np.bincount(expert_P, minlength=told.problem.model.experts)
    load_G = told.judged.busy_LG[row] / told.judged.fair_L[row]
    rows = []
    for gpu, experts in enumerate(expert_P.reshape(told.problem.gpus, -1).tolist()):
        names = [f"{expert}*" if count_E[expert] > 1 else str(expert) for expert in experts]
        rows.append([str(gpu), f"{load_G[gpu]:.2f}", ", ".join(names)])
    caption = f"Layer {layer}: experts by GPU"
    worst = f"busiest GPU {load_G.max():.2f} of its fair share"
    return fold(
        f"layer {layer}: {worst}",
        table_of(("GPU", "load", "experts in its slots"), rows, caption, words=(0, 2)),
    )
