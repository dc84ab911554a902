"""An all-to-all that was timed over a sweep of sizes between GPUs of a machine, as a plan can use it.

Shapes: S sizes, G GPUs of the machine.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AllToAll:
    """Each of `groups` exchanged at the same time: every GPU sent `peer_bytes_S[s]` to each other one of its.

    `slope` is the seconds that one more byte to each takes, of large messages, and `start_seconds` what all
    of them wait first; None where the sizes do not tell. GPUs are counted in rank order.
    """

    source: str
    scope: str  # all, rail, domain
    hosts: int  # 0: not known
    groups: tuple[tuple[int, ...], ...]
    peer_bytes_S: tuple[float, ...]  # growing
    seconds_S: tuple[float, ...]
    slope: float
    start_seconds: float | None = None

    @property
    def ranks(self) -> int:
        return sum(map(len, self.groups))

    def sent_GG(self, gpus: int) -> Floats:
        """Who sends to whom, one byte each, among so many GPUs of the machine; the diagonal is free."""
        if len(self.groups) == 1 and self.ranks == gpus:
            return everyone_GG(gpus)
        sent_GG = np.zeros((gpus, gpus))
        for members in self.groups:
            sent_GG[np.ix_(members, members)] = 1.0
        np.fill_diagonal(sent_GG, 0.0)
        return sent_GG

    def seconds(self, peer_bytes: float) -> float | None:
        """Of such messages, between the sizes next to them; None for messages smaller than any measured."""
        if not self.peer_bytes_S or peer_bytes < self.peer_bytes_S[0]:
            return None
        last = self.peer_bytes_S[-1]
        if peer_bytes > last:
            return self.seconds_S[-1] + (peer_bytes - last) * self.slope
        return float(np.interp(peer_bytes, self.peer_bytes_S, self.seconds_S))


def everyone_GG(gpus: int) -> Floats:
    """A byte from every GPU to every other one: one cell seen so often, whatever the machine's size."""
    return np.broadcast_to(np.float64(1.0), (gpus, gpus))
