"""Waves of transfers: in none of them does a GPU send twice or receive twice, and they are as few as can be.

Transfers are the edges of a bipartite multigraph (senders, receivers), and König's theorem says that as many
waves suffice as the busiest GPU has transfers to send or to receive.

Shapes: T transfers.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def waves(source_T: Ints, target_T: Ints, gpus: int) -> Ints:
    """From the placement that runs to the planned one.

    Bytes and seconds are of whole experts over the links' full rates, nothing else on them.
    """
    found = _Waves(source_T, target_T, gpus)
    for transfer in range(len(source_T)):
        found.add(transfer)
    return found.wave_T


class _Waves:
    """What each GPU has in which wave; side 0 sends, side 1 receives."""

    def __init__(self, source_T: Ints, target_T: Ints, gpus: int) -> None:
        most = max(int(np.bincount(end_T, minlength=gpus).max(initial=0)) for end_T in (source_T, target_T))
        self.wave_T = np.zeros(len(source_T), dtype=np.int64)
        self._ends = (source_T.tolist(), target_T.tolist())
        every = (1 << most) - 1  # a bit for each wave
        self._free = ([every] * gpus, [every] * gpus)
        self._taken: tuple[dict[tuple[int, int], int], ...] = ({}, {})  # (GPU, wave) -> transfer

    def add(self, transfer: int) -> None:
        source, target = (end[transfer] for end in self._ends)
        free_source, free_target = self._free[0][source], self._free[1][target]
        both = free_source & free_target
        if both:
            self._paint(transfer, _lowest(both))
            return
        ours, theirs = _lowest(free_source), _lowest(free_target)
        path = self._path(target, ours, theirs)
        swapped = [theirs if self.wave_T[edge] == ours else ours for edge in path]
        for edge in path:
            self._wash(edge)
        for edge, other in zip(path, swapped, strict=True):
            self._paint(edge, other)
        self._paint(transfer, ours)

    def _path(self, target: int, ours: int, theirs: int) -> list[int]:
        """Alternating transfers from the receiver on; bipartite, so it never comes to the sender."""
        path: list[int] = []
        side, gpu, wave = 1, target, ours
        while (gpu, wave) in self._taken[side]:
            path.append(self._taken[side][gpu, wave])
            side = 1 - side
            gpu, wave = self._ends[side][path[-1]], theirs if wave == ours else ours
        return path

    def _paint(self, transfer: int, wave: int) -> None:
        self.wave_T[transfer] = wave
        for end, free, taken in zip(self._ends, self._free, self._taken, strict=True):
            taken[end[transfer], wave] = transfer
            free[end[transfer]] &= ~(1 << wave)

    def _wash(self, transfer: int) -> None:
        wave = int(self.wave_T[transfer])
        for end, free, taken in zip(self._ends, self._free, self._taken, strict=True):
            del taken[end[transfer], wave]
            free[end[transfer]] |= 1 << wave


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
