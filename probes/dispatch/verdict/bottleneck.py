"""What each layer waited for: the resource that the prediction names, and the one that the times show.

Shapes: G GPUs (one rank each), R resources.
"""

from dataclasses import dataclass

import numpy as np

from planner.topology import Topology
from probes.dispatch.timed import Floats, Timed


@dataclass(frozen=True)
class Wait:
    """`agrees`: whether the times agree with the resource named; None where they tell of none."""

    named: str
    shown: str
    agrees: bool | None
    slowest_rank: int


def wait_of(
    timed: Timed, phase: str, topology: Topology, share_R: Floats, tolerance: float, noise: float
) -> Wait:
    """`share_R`: of its rate that each resource reaches, as found from all times together.

    The times show the resource of most seconds among those that the slowest ranks use, where they are as
    long as it says. Ranks, and resources, that differ by less than the noise count as one.
    """
    seconds_G = np.median(timed.seconds_GN[phase], axis=1)
    slowest, expected = int(seconds_G.argmax()), timed.expected
    told_R = expected.drawn_R[phase]
    if not told_R.any():
        return Wait("start-up", "start-up", None, slowest)
    found_R = told_R / share_R
    last = np.flatnonzero(seconds_G >= seconds_G[slowest] * (1 - noise)).tolist()
    touched_R = np.any([_touched_R(topology, expected.bytes_GG[phase], rank) for rank in last], axis=0)
    own_R = np.where(touched_R, found_R, 0.0)
    named, shown = int(told_R.argmax()), int(own_R.argmax())
    names = [one.name for one in topology.resources]
    predicted = expected.start[phase] + float(own_R[shown])
    if abs(np.log(float(seconds_G[slowest]) / predicted)) > tolerance:
        return Wait(names[named], "", None, slowest)
    same = own_R[named] > 0 and np.log(own_R[shown] / own_R[named]) <= noise
    return Wait(names[named], names[named] if same else names[shown], bool(same), slowest)


def _touched_R(topology: Topology, bytes_GG: Floats, rank: int) -> np.ndarray:
    """The resources that a rank's own messages use, sent and received."""
    touched_R = np.zeros(len(topology.resources), dtype=bool)
    for peer in range(len(bytes_GG)):
        for sender, receiver in ((rank, peer), (peer, rank)):
            if bytes_GG[sender, receiver] > 0:
                touched_R[list(topology.route(sender, receiver))] = True
    return touched_R
