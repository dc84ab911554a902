"""Rows with holes made whole again: experts that lost all their slots, and slots that are empty.

It is the least that an engine has to do that goes on after a loss: nothing else moves. An expert without a
slot takes one of an expert that has several, an empty slot gets the expert with most load a copy.

Shapes: L layers, E experts, P slots, G GPUs, S slots of a GPU.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

EMPTY = -1  # the expert of a slot that holds none


def refilled(expert_LP: Ints, shares_LE: Floats, gpus: int) -> Ints:
    """The rows with every expert in a slot and no slot empty. There must be as many slots as experts.

    >>> refilled(np.array([[0, 1, 0, -1]]), np.array([[0.4, 0.3, 0.2, 0.1]]), gpus=2).tolist()
    [[3, 1, 0, 2]]
    """
    rows = zip(expert_LP, shares_LE, strict=True)
    return np.array([_row(expert_P.reshape(gpus, -1), share_E).ravel() for expert_P, share_E in rows])


def missing_L(expert_LP: Ints, experts: int) -> Ints:
    """How many experts of each layer have no slot."""
    return np.array([experts - len(set(row) - {EMPTY}) for row in expert_LP.tolist()], dtype=np.int64)


def _row(expert_GS: Ints, share_E: Floats) -> Ints:
    found_GS = expert_GS.copy()
    copies_E = np.bincount(found_GS[found_GS != EMPTY], minlength=len(share_E))
    for expert in sorted(np.flatnonzero(copies_E == 0).tolist(), key=lambda e: (-share_E[e], e)):
        empty = _emptiest(found_GS, share_E, copies_E)
        place = _given_up(found_GS, share_E, copies_E) if empty is None else empty
        copies_E[found_GS[place]] -= int(found_GS[place] != EMPTY)
        found_GS[place], copies_E[expert] = expert, 1
    while (free := _emptiest(found_GS, share_E, copies_E)) is not None:
        each_E, held_S = share_E / copies_E, found_GS[free[0]]
        each_E[held_S[held_S != EMPTY]] = -1.0  # no expert twice on one GPU
        found_GS[free] = int(each_E.argmax())
        copies_E[found_GS[free]] += 1
    return found_GS


def _emptiest(expert_GS: Ints, share_E: Floats, copies_E: Ints) -> tuple[int, int] | None:
    """The first empty slot of the GPU with least load that has one."""
    free_G = (expert_GS == EMPTY).any(axis=1)
    if not free_G.any():
        return None
    gpu = int(np.where(free_G, _load_G(expert_GS, share_E, copies_E), np.inf).argmin())
    return gpu, int((expert_GS[gpu] == EMPTY).argmax())


def _given_up(expert_GS: Ints, share_E: Floats, copies_E: Ints) -> tuple[int, int]:
    """A slot of the expert that misses a copy least, on the busiest GPU that has one."""
    several = np.flatnonzero(copies_E > 1)
    expert = int(several[(share_E[several] / (copies_E[several] - 1)).argmin()])
    holds_GS = expert_GS == expert
    load_G = _load_G(expert_GS, share_E, copies_E)
    gpu = int(np.where(holds_GS.any(axis=1), load_G, -1.0).argmax())
    return gpu, int(holds_GS[gpu].argmax())


def _load_G(expert_GS: Ints, share_E: Floats, copies_E: Ints) -> Floats:
    each_E = share_E / np.maximum(copies_E, 1)
    return np.asarray(np.where(expert_GS == EMPTY, 0.0, each_E[expert_GS]).sum(axis=1))
