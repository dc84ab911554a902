"""DeepSeek's EPLB, which LMDeploy and FastDeploy copied: the row that it makes of one layer's counts.

The next replica goes to the expert with the most tokens a copy. Then copies are dealt out, the heaviest
first, each to the emptiest GPU that has room. With several groups of GPUs, experts are dealt to the groups
first, and replicas stay inside one. All of it in float32, as the engines do it.
Source: LMDeploy 0.18.0, pytorch/nn/eplb.py; FastDeploy at 66549b3, eplb/eplb.py.

Shapes: E experts, P slots, C copies.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


def rebalanced(
    counts_E: Ids, slots: int, gpus: int, groups: int = 1, *, bundles: int | None = None, by_id: bool = False
) -> Ids | None:
    """The experts in slot order, or None where two of equal weight make the answer a matter of chance.

    `bundles`: so many runs of neighbouring experts are dealt to the groups whole (DeepSeek's node-limited
    mode, which vLLM and SGLang have too); each expert by itself where it is not given. `by_id`: the lower id
    comes first where weights are equal.

    >>> rebalanced(np.array([80, 30, 20, 10]), slots=6, gpus=2).tolist()
    [1, 0, 3, 0, 0, 2]
    """
    weight_E = counts_E.astype(np.float32)
    names_E = np.arange(len(counts_E))
    if bundles is None:
        group_E = _packs(weight_E, names_E, groups, by_id=by_id)
    else:
        size = len(counts_E) // bundles
        group_B = _packs(weight_E.reshape(bundles, size).sum(axis=1), np.arange(bundles), groups, by_id=by_id)
        group_E = None if group_B is None else np.repeat(group_B, size)
    if group_E is None:
        return None
    row: list[int] = []
    for group in range(groups):
        held_E = names_E[group_E == group]
        if groups > 1:
            held_E = held_E[np.argsort(-weight_E[held_E], kind="stable")]
        dealt = _group_slots(weight_E[held_E], held_E, slots // groups, gpus // groups, by_id=by_id)
        if dealt is None:
            return None
        row += dealt
    return np.array(row, dtype=np.int64)


def copies_of(weight_E: Weights, slots: int, *, by_id: bool = False) -> Ids | None:
    """replicas_E; None where another expert had as much right to the last replica, unless `by_id`."""
    replicas_E = np.ones(len(weight_E), dtype=np.int64)
    last, most = -1, np.float32(-1.0)
    for _ in range(slots - len(weight_E)):
        each_E = weight_E / replicas_E.astype(np.float32)
        last = int(each_E.argmax())
        most = each_E[last]
        replicas_E[last] += 1
    rivals = np.flatnonzero(weight_E / replicas_E.astype(np.float32) == most)
    return None if len(rivals) and last >= 0 and not by_id else replicas_E


def deal(weights: Sequence[float], sums: Weights, room: Ids) -> list[int]:
    """The pack of each weight in turn, to the emptiest with room, the first of those. Changes both arrays."""
    packs = []
    for weight in weights:
        pack = int(np.where(room > 0, sums, np.float32(np.inf)).argmin())
        sums[pack] += np.float32(weight)
        room[pack] -= 1
        packs.append(pack)
    return packs


def _group_slots(weight_E: Weights, names_E: Ids, slots: int, gpus: int, *, by_id: bool) -> list[int] | None:
    replicas_E = copies_of(weight_E, slots, by_id=by_id)
    if replicas_E is None:
        return None
    copy_C = np.concatenate([np.arange(len(weight_E)), np.repeat(np.arange(len(weight_E)), replicas_E - 1)])
    weight_C = (weight_E / replicas_E.astype(np.float32))[copy_C]
    gpu_C = _packs(weight_C, copy_C, gpus, by_id=by_id)
    if gpu_C is None:
        return None
    arrival_C = np.argsort(-weight_C, kind="stable") if slots > gpus else np.arange(slots)
    in_order_C = arrival_C[np.argsort(gpu_C[arrival_C], kind="stable")]
    found: list[int] = names_E[copy_C[in_order_C]].tolist()
    return found


def _packs(weight_C: Weights, names_C: Ids, packs: int, *, by_id: bool = False) -> Ids | None:
    """The pack of each weight. No sort promises the order of equal ones, which only copies may be."""
    room = len(weight_C) // packs
    if room == 1 or packs == 1:
        return np.arange(len(weight_C)) if room == 1 else np.zeros(len(weight_C), dtype=np.int64)
    order_C = np.argsort(-weight_C, kind="stable")
    tied = weight_C[order_C][1:] == weight_C[order_C][:-1]
    if not by_id and (tied & (names_C[order_C][1:] != names_C[order_C][:-1])).any():
        return None
    pack_C = np.empty(len(weight_C), dtype=np.int64)
    pack_C[order_C] = deal(weight_C[order_C].tolist(), np.zeros(packs, np.float32), np.full(packs, room))
    return pack_C
