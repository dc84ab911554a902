"""The judge: hard rules that every placement passes, whoever made it. Knows no solver."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.placement import Placement
from planner.problem.islands import island_LG
from planner.problem.problem import Problem
from planner.problem.survival import Survival, held_places_LE


@dataclass(frozen=True)
class Violation:
    """One broken rule and where: the first place of those that break it, as far as the rule has one."""

    rule: str
    text: str
    layer: int | None = None
    gpu: int | None = None
    expert: int | None = None


def violations(problem: Problem, placement: Placement) -> list[Violation]:
    """Every rule that `placement` breaks as an answer to `problem`; empty for a good one.

    At most one entry a layer and rule.
    """
    return list(_broken(problem, placement))


def _broken(problem: Problem, placement: Placement) -> Iterator[Violation]:
    yield from _misshapen(problem, placement)
    of_rows = row_violations(placement.expert_LP, placement.layer_ids, problem.model.experts, placement.gpus)
    broken = list(of_rows)
    yield from broken
    if broken:
        return
    if problem.resplittable:
        yield from _apart(placement)
    if problem.survive is not None and placement.gpus == problem.gpus:
        yield from _unsurvived(problem, problem.survive, placement)


def _misshapen(problem: Problem, placement: Placement) -> Iterator[Violation]:
    """Other layers, GPUs or slots than the question's."""
    asked = problem.model.placed_layer_ids
    if placement.layer_ids != asked:
        missing = sorted(set(asked) - set(placement.layer_ids)) or "none"
        surplus = sorted(set(placement.layer_ids) - set(asked)) or "none"
        rule = f"rows must be the MoE and draft layers of {problem.model.name}, in order"
        yield Violation("layers", f"{rule}; missing {missing}, surplus {surplus}")
    if placement.gpus != problem.gpus:
        yield Violation("gpus", f"made for {placement.gpus} GPUs, the topology has {problem.gpus}")
    if placement.slots != problem.slots:
        wanted = f"{problem.slots_per_gpu} on each of {problem.gpus} GPUs"
        yield Violation("slots", f"{placement.slots} slots a layer, asked for {wanted}")


def survives(survive: Survival, problem: Problem, placement: Placement) -> bool:
    """Whether every expert has a slot after each of these losses, on the problem's GPUs."""
    held_LE = held_places_LE(placement.expert_LP, survive.place_G(problem.node_G), problem.model.experts)
    return bool((held_LE >= survive.least_replicas).all())


def _unsurvived(problem: Problem, survive: Survival, placement: Placement) -> Iterator[Violation]:
    place_G = survive.place_G(problem.node_G)
    held_LE = held_places_LE(placement.expert_LP, place_G, problem.model.experts)
    for layer_id, held_E, expert_P in zip(placement.layer_ids, held_LE, placement.expert_LP, strict=True):
        few = np.flatnonzero(held_E < survive.least_replicas)
        if len(few):
            gpus = np.flatnonzero((expert_P.reshape(problem.gpus, -1) == few[0]).any(axis=1))
            listed = f"{len(gpus)} GPU{'s' if len(gpus) > 1 else ''} ({', '.join(map(str, gpus))})"
            where = "one node" if survive.node else listed
            others = f", nor would {len(few) - 1} others" if len(few) > 1 else ""
            text = (
                f"layer {layer_id}: expert {few[0]} would not survive the loss of {survive}, "
                f"its slots are all on {where}{others}"
            )
            yield Violation("survive", text, layer_id, int(gpus[0]), int(few[0]))


def _apart(placement: Placement) -> Iterator[Violation]:
    """Layers whose GPUs shared experts do not join, where the question asks for that."""
    islands_LG = island_LG(placement.expert_LP, placement.gpus)
    for row in np.flatnonzero((islands_LG > 0).any(axis=1)).tolist():
        gpu = int(np.flatnonzero(islands_LG[row])[0])
        layer_id = placement.layer_ids[row]
        text = (
            f"layer {layer_id}: no chain of shared experts joins GPU {gpu} to GPU 0, "
            "so load cannot be passed on between them"
        )
        yield Violation("resplittable", text, layer_id, gpu)


def row_violations(
    expert_LP: npt.NDArray[np.integer], layer_ids: tuple[int, ...], experts: int, gpus: int
) -> Iterator[Violation]:
    """The rules of rows alone, whatever the question.

    One row for each layer, ids in range, every expert has a slot, slots divide over GPUs, no expert twice on
    one GPU.
    """
    if len(expert_LP) != len(layer_ids):
        yield Violation("rows", f"{len(expert_LP)} rows for {len(layer_ids)} layers")
    slots = expert_LP.shape[1]
    divides = slots % gpus == 0
    if not divides:
        yield Violation("divides", f"{slots} slots do not divide over {gpus} GPUs")
    for layer_id, expert_P in zip(layer_ids, expert_LP, strict=False):
        outside = np.flatnonzero((expert_P < 0) | (expert_P >= experts))
        if len(outside):
            slot, expert = int(outside[0]), int(expert_P[outside[0]])
            gpu = slot // (slots // gpus) if divides else None
            text = f"layer {layer_id}, slot {slot}: expert id {expert} is outside 0..{experts - 1}"
            yield Violation("range", text, layer_id, gpu, expert)
            continue
        yield from _uncovered(layer_id, expert_P, experts)
        if divides:
            yield from _duplicates(layer_id, expert_P.reshape(gpus, -1))


def _uncovered(layer_id: int, expert_P: npt.NDArray[np.integer], experts: int) -> Iterator[Violation]:
    absent = np.flatnonzero(np.bincount(expert_P, minlength=experts) == 0)
    if len(absent):
        others = f", nor have {len(absent) - 1} others" if len(absent) > 1 else ""
        text = f"layer {layer_id}: expert {absent[0]} has no slot{others}"
        yield Violation("coverage", text, layer_id, expert=int(absent[0]))


def _duplicates(layer_id: int, expert_GS: npt.NDArray[np.integer]) -> Iterator[Violation]:
    sorted_GS = np.sort(expert_GS, axis=1)
    twice = np.argwhere(sorted_GS[:, 1:] == sorted_GS[:, :-1])
    if len(twice):
        gpu, expert = int(twice[0][0]), int(sorted_GS[tuple(twice[0])])
        text = f"layer {layer_id}: GPU {gpu} holds expert {expert} twice"
        yield Violation("distinct", text, layer_id, gpu, expert)
