"""Dealing items of given weight into bins, as many to each, for many rows at once: the packing under `pack`.

Shapes: R rows (a layer, or a node of one), E items, P = B * S of them with copies, B bins, S rounds: each
deals one item to every bin.
An item in a round is its key: the bits of its value, with its id in the lowest ones. The key is within 2^-40
of the value, sorts as values do with ties by id, and carries the id along, so that a plain sort of whole
numbers does the work of several slower steps, alike on every machine.
"""

import numpy as np
import numpy.typing as npt

Loads = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEALT_AGAIN = 18  # rounds dealt again after all are dealt once
# A peak this far above mean and largest item: rounds did badly, and item by item may do better
WORTH_DEALING_SINGLY = 1.03


def deal(value_RE: Loads, times_RE: Ints, speed_RB: Loads) -> Ints:
    """item_RBS: `times` copies of every item over the bins, none twice in a bin, given times <= bins.

    Values are 0 or more. Bins end near even in value over speed.
    """
    rows, bins = speed_RB.shape
    mask = _mask(value_RE.shape[1])
    key_RE = _keys(np.ascontiguousarray(value_RE), np.arange(value_RE.shape[1]), mask)
    key_RP = np.sort(np.repeat(key_RE.ravel(), times_RE.ravel()).reshape(rows, -1), axis=1)[:, ::-1]
    round_SRB = np.ascontiguousarray(key_RP.reshape(rows, -1, bins).transpose(1, 0, 2))
    key_SRB = _deal_rounds(round_SRB, mask, speed_RB)
    item_RBS = (key_SRB & mask).transpose(1, 2, 0)
    # Equal bins of two items: rounds pair largest with smallest, which is optimal
    if len(key_SRB) > 2 or (speed_RB != speed_RB[:, :1]).any():
        value_RP = key_RP.view(np.float64)
        peak_R = (key_SRB.view(np.float64).sum(axis=0) / speed_RB).max(axis=1)
        poor = np.flatnonzero(peak_R > _least_R(value_RP, speed_RB) * WORTH_DEALING_SINGLY)
        if len(poor):
            singly_RBS, singly_R = _deal_singly(key_RP[poor] & mask, value_RP[poor], speed_RB[poor])
            better = singly_R < peak_R[poor]
            item_RBS[poor[better]] = singly_RBS[better]
    return item_RBS


def _least_R(value_RP: Loads, speed_RB: Loads) -> Loads:
    """A peak that no deal beats: the mean, or the largest item alone in the fastest bin."""
    mean_R, largest_R = value_RP.sum(axis=1) / speed_RB.sum(axis=1), value_RP[:, 0] / speed_RB.max(axis=1)
    return np.asarray(np.maximum(mean_R, largest_R))


def _mask(ids: int) -> int:
    return (1 << ids.bit_length()) - 1


def _keys(value: Loads, ids: Ints, mask: int) -> Ints:
    keys: Ints = (value.view(np.int64) & ~mask) | ids
    return keys


def _deal_rounds(round_SRB: Ints, mask: int, speed_RB: Loads) -> Ints:
    """key_SRB: what each bin gets in each round.

    A round's largest goes to the bin that lacks most, its smallest to the one that lacks least. No other
    order of a round leaves a lower peak, where bins are equally fast. So once all are dealt, rounds are dealt
    again, smallest items first, each knowing now what the others hold. The copies of an item follow each
    other, so they can only meet across two rounds: at first the bins that have one are passed over, and later
    such copies stay where they are.
    """
    rounds, rows, bins = round_SRB.shape
    crossing_SR2 = _crossing(round_SRB & mask)
    total_RB = _handicap_RB(round_SRB, speed_RB)
    flat_R1 = np.arange(rows)[:, None] * bins
    key_SRB = np.empty_like(round_SRB)
    for turn in range(rounds):
        order_RB = lightest_first(total_RB)
        if turn:
            _pass_over(order_RB, key_SRB[turn - 1] & mask, crossing_SR2[turn, :, 0], round_SRB[turn] & mask)
        key_SRB[turn].ravel()[(order_RB + flat_R1).ravel()] = round_SRB[turn].ravel()
        total_RB += key_SRB[turn].view(np.float64)
    item_SRB = key_SRB & mask
    stays_SRB = (item_SRB == crossing_SR2[:, :, :1]) | (item_SRB == crossing_SR2[:, :, 1:])
    for turn in range(rounds - 1, rounds - 1 - (DEALT_AGAIN if rounds > 2 else 0), -1):
        key_RB, stays_RB = key_SRB[turn % rounds], stays_SRB[turn % rounds]
        rest_RB = total_RB - key_RB.view(np.float64)
        key_RB[...] = _dealt_again(key_RB, rest_RB, stays_RB, flat_R1)
        total_RB = rest_RB + key_RB.view(np.float64)
    return key_SRB


def _handicap_RB(round_SRB: Ints, speed_RB: Loads) -> Loads:
    """What a slower bin starts with: what it is due less. Zero where bins are alike."""
    total_R1 = round_SRB.view(np.float64).sum(axis=(0, 2))[:, None]
    due_RB = total_R1 * (speed_RB / speed_RB.sum(axis=1, keepdims=True))
    return np.asarray(due_RB.max(axis=1, keepdims=True) - due_RB)


def _dealt_again(key_RB: Ints, rest_RB: Loads, stays_RB: npt.NDArray[np.bool_], flat_R1: Ints) -> Ints:
    """One round, its largest item to the bin whose other items weigh least; what stays keeps its bin."""
    dealt_RB = np.empty_like(key_RB)
    if not stays_RB.any():
        largest_first_RB = np.sort(key_RB, axis=1)[:, ::-1]
        dealt_RB.ravel()[(lightest_first(rest_RB) + flat_R1).ravel()] = largest_first_RB.ravel()
        return dealt_RB
    # Those that stay come last in both orders
    order_RB = lightest_first(np.where(stays_RB, np.inf, rest_RB))
    largest_first_RB = np.sort(np.where(stays_RB, -1, key_RB), axis=1)[:, ::-1]
    dealt_RB.ravel()[(order_RB + flat_R1).ravel()] = largest_first_RB.ravel()
    return np.where(stays_RB, key_RB, dealt_RB)


def lightest_first(total_RB: Loads) -> Ints:
    """order_RB: bins by total, ties by number."""
    mask = _mask(total_RB.shape[1])
    key_RB = _keys(total_RB, np.arange(total_RB.shape[1]), mask)
    key_RB.sort(axis=1)
    return key_RB & mask


def _crossing(item_SRB: Ints) -> Ints:
    """crossing_SR2: the item that a round shares with the one before, and the one after; -1 for none."""
    shared_SR = np.where(item_SRB[:-1, :, -1] == item_SRB[1:, :, 0], item_SRB[1:, :, 0], -1)
    none_1R = np.full((1, item_SRB.shape[1]), -1)
    return np.stack([np.concatenate([none_1R, shared_SR]), np.concatenate([shared_SR, none_1R])], axis=2)


def _pass_over(order_RB: Ints, before_RB: Ints, shared_R: Ints, item_RB: Ints) -> None:
    """Give copies of the item that a round shares with the one before the lightest bins without one.

    `order_RB` is changed in place.
    """
    rows = np.flatnonzero(shared_R >= 0)
    if not len(rows):
        return
    shared_R1, bins = shared_R[rows, None], order_RB.shape[1]
    copies_R1 = (item_RB[rows] == shared_R1).sum(axis=1, keepdims=True)
    without_RB = np.take_along_axis(before_RB[rows], order_RB[rows], axis=1) != shared_R1
    takes_RB = without_RB & (np.cumsum(without_RB, axis=1) <= copies_R1)
    place_RB = np.sort(np.arange(bins) + np.where(takes_RB, 0, bins), axis=1) % bins
    order_RB[rows] = np.take_along_axis(order_RB[rows], place_RB, axis=1)


def _deal_singly(item_RP: Ints, value_RP: Loads, speed_RB: Loads) -> tuple[Ints, Loads]:
    """Item by item, largest first, to the bin that has room, no copy, and then the least value over speed.

    Better where few items outweigh all others. Returns item_RBS and peak_R; the peak is infinite, and the
    items void, for a row in which the last copies found no bin.
    """
    (rows, slots), bins = item_RP.shape, speed_RB.shape[1]
    size = slots // bins
    item_RBS = np.zeros((rows, bins, size), dtype=np.int64)
    total_RB, used_RB = np.zeros((rows, bins)), np.zeros((rows, bins), dtype=np.int64)
    open_RB = np.zeros((rows, bins))  # added to the total: infinite where the bin is full
    has_RB = np.zeros((rows, bins))  # the same, where the bin has a copy of the item at hand
    failed_R = np.zeros(rows, dtype=bool)
    row_R = np.arange(rows)
    for slot in range(slots):
        if slot:
            has_RB[item_RP[:, slot] != item_RP[:, slot - 1]] = 0.0
        cost_RB = (total_RB + value_RP[:, slot, None]) / speed_RB + open_RB + has_RB
        bin_R = cost_RB.argmin(axis=1)
        failed_R |= np.isinf(cost_RB[row_R, bin_R])
        place_R = np.minimum(used_RB[row_R, bin_R], size - 1)
        item_RBS[row_R, bin_R, place_R] = item_RP[:, slot]
        used_RB[row_R, bin_R] = place_R + 1
        total_RB[row_R, bin_R] += value_RP[:, slot]
        open_RB[row_R, bin_R] = np.where(place_R + 1 == size, np.inf, 0.0)
        has_RB[row_R, bin_R] = np.inf
    return item_RBS, np.where(failed_R, np.inf, (total_RB / speed_RB).max(axis=1))
