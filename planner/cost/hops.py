"""Hops: messages that travel by another GPU, over units (NVLink domains or nodes) and inside them.

What crosses to other units comes first in each pair, what is spread inside a unit second.

Shapes: G GPUs, U units, I indices of GPUs in a unit.
"""

import numpy as np

from planner.cost.routing import Floats, Ints


def two_hops(hits_GG: Floats, hits_GU: Floats, unit_G: Ints) -> tuple[Floats, Floats]:
    """First hop to the GPU of the same index in each other unit that is hit, second from there to each GPU
    hit.

    What stays in its unit takes the second hop alone.
    """
    gpus, size_U = len(unit_G), np.bincount(unit_G)
    if (size_U == size_U[0]).all() and (np.diff(unit_G) >= 0).all():
        return _two_hops_of_equal_units(hits_GG, hits_GU, len(size_U))
    index_G = np.empty(gpus, dtype=np.int64)
    members = [np.flatnonzero(unit_G == unit) for unit in range(len(size_U))]
    for member in members:
        index_G[member] = np.arange(len(member))
    over_GG, inside_GG = np.zeros((2, gpus, gpus))
    for unit, member in enumerate(members):
        outside = np.flatnonzero(unit_G != unit)
        forwarder = member[index_G[outside] % len(member)]
        over_GG[outside, forwarder] += hits_GU[outside, unit]
        np.add.at(inside_GG, (forwarder[:, None], member[None, :]), hits_GG[np.ix_(outside, member)])
        inside_GG[np.ix_(member, member)] += hits_GG[np.ix_(member, member)]
    return over_GG, inside_GG


def _two_hops_of_equal_units(hits_GG: Floats, hits_GU: Floats, units: int) -> tuple[Floats, Floats]:
    """The same in whole-array steps, with a GPU as (unit, index in it)."""
    gpus = len(hits_GG)
    size, unit_U, index_I = gpus // units, np.arange(units), np.arange(gpus // units)
    hits_UIUI = hits_GG.reshape(units, size, units, size).copy()
    own_UII = hits_UIUI[unit_U, :, unit_U].copy()
    hits_UIUI[unit_U, :, unit_U] = 0.0
    forwarded_UII = hits_UIUI.sum(axis=0).transpose(1, 0, 2)  # unit, forwarder's index, receiver's
    over_UIU = hits_GU.reshape(units, size, units).copy()
    over_UIU[unit_U, :, unit_U] = 0.0
    over_UIUI, inside_UIUI = np.zeros((2, units, size, units, size))
    over_UIUI[:, index_I, :, index_I] = over_UIU.transpose(1, 0, 2)
    inside_UIUI[unit_U, :, unit_U] = own_UII + forwarded_UII
    return over_UIUI.reshape(gpus, gpus), inside_UIUI.reshape(gpus, gpus)


def allgather(unit_G: Ints, tokens: int) -> tuple[Floats, Floats]:
    """Each GPU passes its rank's tokens round a ring of same-index GPUs; every unit spreads what arrived in
    itself. There are as many steps as units.
    """
    count = int(unit_G.max()) + 1
    inside_GG = np.where(unit_G[:, None] == unit_G[None, :], float(count * tokens), 0.0)
    np.fill_diagonal(inside_GG, 0.0)
    over_GG = np.zeros_like(inside_GG)
    for unit in range(count if count > 1 else 0):
        here, there = np.flatnonzero(unit_G == unit), np.flatnonzero(unit_G == (unit + 1) % count)
        over_GG[here, there[np.arange(len(here)) % len(there)]] += (count - 1) * tokens
    return over_GG, inside_GG
