"""From copies at places to slots of GPUs: dealt to the GPUs of each place, then balanced by swaps.

Shapes: L layers, E experts, N places, G GPUs, P slots.
"""

import numpy as np

from planner.solvers.kernels.packing import Ints, Loads, tally
from planner.solvers.kernels.swaps import balance

MOST_SWAPS = 500  # at a place; dozens are usual
WORTH = 1e-9


def copies_at(expert_LP: Ints, place_P: Ints, experts: int) -> Ints:
    """copies_LEN: slots of each place that hold each expert."""
    layers, places = len(expert_LP), int(place_P.max()) + 1
    cell_LP = (np.arange(layers)[:, None] * experts + expert_LP) * places + place_P
    return tally(cell_LP, layers, experts, places)


def seat(copies_LEN: Ints, load_LEN: Loads, away_LEN: Loads, place_G: Ints) -> Ints:
    """expert_LP with these copies at each place, none twice on a GPU.

    `load_LEN`: what each place serves of each expert, in any unit; `away_LEN`: the part of it that comes over
    the network, which is levelled as well.
    """
    layers, _, places = copies_LEN.shape
    slots = int(copies_LEN[0].sum()) // len(place_G)
    expert_LGS = np.empty((layers, len(place_G), slots), dtype=np.int64)
    for place in range(places):
        member_G = np.flatnonzero(place_G == place)
        copies_LE, load_LE, away_LE = copies_LEN[:, :, place], load_LEN[:, :, place], away_LEN[:, :, place]
        order_LE = np.argsort(-load_LE / np.maximum(copies_LE, 1), axis=1, kind="stable")
        times = np.take_along_axis(copies_LE, order_LE, axis=1).ravel()
        # Copies are neighbours: no GPU gets two
        dealt_LSG = np.repeat(order_LE.ravel(), times).reshape(layers, slots, len(member_G))
        seated_LP = balance(load_LE, dealt_LSG.transpose(0, 2, 1).reshape(layers, -1), len(member_G))
        for row in range(layers if len(member_G) > 1 else 0):
            each_2E = np.stack([load_LE[row], away_LE[row]]) / np.maximum(copies_LE[row], 1)
            seated_LP[row] = _levelled(seated_LP[row], each_2E, len(member_G))
        expert_LGS[:, member_G] = seated_LP.reshape(layers, len(member_G), slots)
    return expert_LGS.reshape(layers, -1)


def _levelled(expert_P: Ints, each_2E: Loads, gpus: int) -> Ints:
    """The GPUs of one place after swaps, the best first.

    They lower the squares of how far GPUs are from the mean, of load and of what comes from away.
    """
    expert_P = expert_P.copy()
    gpu_P = np.repeat(np.arange(gpus), len(expert_P) // gpus)
    mean_2 = each_2E[:, expert_P].sum(axis=1, keepdims=True) / gpus
    if not (mean_2 > 0).all() or np.allclose(each_2E[1] * mean_2[0], each_2E[0] * mean_2[1]):
        return expert_P
    each_2E = each_2E / mean_2
    for _ in range(MOST_SWAPS):
        each_2P = each_2E[:, expert_P]
        total_2P = each_2P.reshape(2, gpus, -1).sum(axis=2)[:, gpu_P]
        held_PP = np.zeros((gpus, each_2E.shape[1]), dtype=bool)
        held_PP[gpu_P, expert_P] = True
        moved_2PP = each_2P[:, None] - each_2P[:, :, None]  # what the row's GPU gains
        change_PP = (moved_2PP * (moved_2PP + total_2P[:, :, None] - total_2P[:, None])).sum(axis=0)
        meets_PP = held_PP[gpu_P][:, expert_P]  # the row's GPU holds the column's expert, as it does its own
        change_PP[meets_PP | meets_PP.T] = np.inf
        best = int(change_PP.argmin())
        if change_PP.flat[best] > -WORTH:
            break
        one, other = divmod(best, len(expert_P))
        expert_P[[one, other]] = expert_P[[other, one]]
    return expert_P
