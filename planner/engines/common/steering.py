"""Counts that steer DeepSeek's EPLB to one given row, where such counts are found.

Without replicas any counts without ties do: they say in which order the GPUs are filled, and each expert gets
the count of a place of its own GPU. With replicas the copies of an expert weigh the same, so they come one
after the other and fill neighbours in the order of fullness. All experts are then given nearly the same
weight a copy, so that the GPUs are filled in rounds, one copy each; the small differences decide the order of
the next round. Two rounds of experts with one copy, whose order is known, can bring about any order; then
come the rounds that hold the replicas, worked out from the last to the first; then the rest.

Shapes: E experts, P slots, G GPUs.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.engines.common.balancer import Ids, deal

EXACT = 1 << 24  # whole numbers up to here are exact in float32
LEAD = 2  # rounds of experts with one copy before the first replica
Group = tuple[int, ...]  # the GPUs of one expert's copies


@dataclass(frozen=True)
class Round:
    """One copy on every GPU, and the differences that bring about its order, and the next."""

    expert_G: tuple[int, ...]
    before_G: Ids  # how full each GPU must be, beside the others, when the round begins
    extra_G: Ids  # what the copy on each GPU weighs more than the round's lightest


def steered_counts(wanted_P: Ids, experts: int, gpus: int, groups: int = 1) -> Ids | None:
    """counts_E that make the balancer give `wanted_P`, up to the order of slots within a GPU; None where none
    were found.
    """
    held = wanted_P.reshape(gpus, -1).tolist()
    replicas_E = np.bincount(wanted_P, minlength=experts)
    if replicas_E.max() == 1:
        return _without_replicas(held, experts, gpus, groups)
    if groups > 1:
        return None
    placed = _rounds(held, replicas_E)
    return None if placed is None else _counts(placed, held, replicas_E)


def _without_replicas(held: list[list[int]], experts: int, gpus: int, groups: int) -> Ids:
    """A count for each place, in the order in which the balancer fills them."""
    places = list(range(experts, 0, -1))
    room = np.full(groups, experts // groups)
    group_of = deal(places, np.zeros(groups, np.float32), room) if groups > 1 else [0] * experts
    per_group = gpus // groups
    sums = np.zeros((groups, per_group), np.float32)
    left = np.full((groups, per_group), experts // gpus)
    waiting = [iter(row) for row in held]
    counts_E = np.zeros(experts, dtype=np.int64)
    for count, group in zip(places, group_of, strict=True):
        gpu = group * per_group + deal([count], sums[group], left[group])[0]
        counts_E[next(waiting[gpu])] = count
    return counts_E


def _rounds(held: list[list[int]], replicas_E: Ids) -> list[Round] | None:
    """The rounds up to the last that holds a replica; None where GPUs have too few experts with one copy."""
    groups_of = _coloured(held, replicas_E)
    slots = len(held[0])
    if LEAD + len(groups_of) > slots:
        return None
    single = [[expert for expert in row if replicas_E[expert] == 1] for row in held]
    lead = [tuple(row.pop(0) for row in single) for _ in range(LEAD)]
    later = []
    for groups in groups_of:
        expert_of = {gpu: expert for expert, gpus in groups.items() for gpu in gpus}
        later.append(
            tuple(expert_of[gpu] if gpu in expert_of else row.pop(0) for gpu, row in enumerate(single))
        )
    return _levelled([*lead, *later])


def _coloured(held: list[list[int]], replicas_E: Ids) -> list[dict[int, Group]]:
    """Experts with replicas in rounds, none of which needs a GPU twice.

    Each round multiplies the differences of those before it, the more so the more copies it holds, so that
    the fullest come last.
    """
    gpus_of: dict[int, list[int]] = {}
    for gpu, row in enumerate(held):
        for expert in row:
            if replicas_E[expert] > 1:
                gpus_of.setdefault(expert, []).append(gpu)
    rounds: list[dict[int, Group]] = []
    taken: list[set[int]] = []
    for expert, gpus in sorted(gpus_of.items(), key=lambda item: (-len(item[1]), item[1], item[0])):
        free = next((number for number, used in enumerate(taken) if not used & set(gpus)), len(rounds))
        if free == len(rounds):
            rounds.append({})
            taken.append(set())
        rounds[free][expert] = tuple(gpus)
        taken[free] |= set(gpus)
    return sorted(rounds, key=lambda found: sum(map(len, found.values())))


def _levelled(experts_of: list[tuple[int, ...]]) -> list[Round]:
    """The rounds with their differences, worked out from the last one on."""
    rounds: list[Round] = []
    need_G: Ids | None = None
    for number in range(len(experts_of) - 1, 0, -1):
        expert_G = experts_of[number]
        order = _order(expert_G, need_G, falling=number == 1)
        before_G, extra_G = _steps(order, expert_G, need_G)
        rounds.insert(0, Round(expert_G, before_G, extra_G))
        need_G = before_G
    assert need_G is not None, "there are rounds after the first"
    return [Round(experts_of[0], np.zeros_like(need_G), need_G), *rounds]


def _order(expert_G: tuple[int, ...], need_G: Ids | None, *, falling: bool) -> list[int]:
    """The GPUs in the order in which the round fills them: the copies of an expert one after the other."""
    if falling:  # the second round: the first gave each GPU less than the one before it
        return list(range(len(expert_G)))[::-1]
    groups: dict[int, list[int]] = {}
    for gpu, expert in enumerate(expert_G):
        groups.setdefault(expert, []).append(gpu)
    if need_G is None:
        return [gpu for group in groups.values() for gpu in group]
    inside = [sorted(group, key=lambda gpu: (need_G[gpu], gpu)) for group in groups.values()]
    return [gpu for group in sorted(inside, key=lambda group: (-need_G[group[0]], group)) for gpu in group]


def _steps(order: list[int], expert_G: tuple[int, ...], need_G: Ids | None) -> tuple[Ids, Ids]:
    """before_G, which rises along the order, and extra_G, which falls along it: together they are `need_G`.

    All copies of an expert have the same extra.
    """
    before_G, extra_G = np.zeros(len(order), dtype=np.int64), np.zeros(len(order), dtype=np.int64)
    for last, gpu in pairwise(order):
        climb = int(gpu < last)  # of two GPUs that are as full, the first is filled
        fall = int(expert_G[gpu] != expert_G[last])  # experts of the same weight have no order
        wanted = climb - fall if need_G is None else int(need_G[gpu] - need_G[last])
        step = max(climb, wanted + fall)
        before_G[gpu] = before_G[last] + step
        extra_G[gpu] = extra_G[last] + wanted - step
    return before_G - before_G.min(), extra_G - extra_G.min()


def _counts(rounds: list[Round], held: list[list[int]], replicas_E: Ids) -> Ids | None:
    """Weights for the rounds, each lighter than the one before it, and for the rest, lighter than all."""
    gpus, slots = len(held), len(held[0])
    rest = gpus * (slots - len(rounds))
    span = sum(int(found.extra_G.max()) + 1 for found in rounds)
    spread = max(int(found.before_G.max()) for found in rounds)
    lightest = 1 + max(spread, rest, (int(replicas_E.max()) - 1) * span)
    if max(len(rounds) * (lightest + span) + rest * slots, replicas_E.max() * (lightest + span)) >= EXACT:
        return None
    weight_E = np.zeros(len(replicas_E), dtype=np.int64)
    sums, base = np.zeros(gpus, np.float32), lightest
    for found in reversed(rounds):
        weight_E[list(found.expert_G)] = base + found.extra_G
        sums += (base + found.extra_G).astype(np.float32)
        base += int(found.extra_G.max()) + 1
    waiting = [iter([expert for expert in row if not weight_E[expert]]) for row in held]
    places = list(range(rest, 0, -1))
    for count, gpu in zip(places, deal(places, sums, np.full(gpus, slots - len(rounds))), strict=True):
        weight_E[next(waiting[gpu])] = count
    return weight_E * replicas_E
