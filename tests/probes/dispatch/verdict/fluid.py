"""A machine that was not built from the law that is tested: flows with max-min fair rates, event by event.

Shapes: G GPUs (one rank each), R resources, F flows.
"""

from collections.abc import Sequence

import numpy as np

from planner.topology import Topology
from probes.dispatch.timed import Floats


def seconds_G(
    topology: Topology, bytes_GG: Floats, bytes_per_s_R: Floats, place_G: Sequence[int] | None = None
) -> Floats:
    """When each rank's last flow, sent or received, is through. `place_G`: the GPU where each rank runs."""
    gpus = len(bytes_GG)
    place = list(range(gpus)) if place_G is None else list(place_G)
    pairs = [(i, j) for i in range(gpus) for j in range(gpus) if i != j and bytes_GG[i, j] > 0]
    uses_FR = np.zeros((len(pairs), len(bytes_per_s_R)), dtype=bool)
    for flow, (i, j) in enumerate(pairs):
        uses_FR[flow, list(topology.route(place[i], place[j]))] = True
    left_F = np.array([bytes_GG[pair] for pair in pairs])
    done_F, now = np.zeros(len(pairs)), 0.0
    while (left_F > 0).any():
        rate_F = fair_rates(uses_FR, left_F > 0, bytes_per_s_R)
        running = left_F > 0
        step = (left_F[running] / rate_F[running]).min()
        now += step
        left_F = np.where(running, left_F - rate_F * step, 0.0)
        ended = running & (left_F <= 1e-9 * bytes_GG.max())
        left_F[ended], done_F[ended] = 0.0, now
    found_G = np.zeros(gpus)
    for (i, j), done in zip(pairs, done_F, strict=True):
        found_G[[i, j]] = np.maximum(found_G[[i, j]], done)
    return found_G


def fair_rates(uses_FR: np.ndarray, running_F: np.ndarray, bytes_per_s_R: Floats) -> Floats:
    """All rates grow together; a flow stops growing when a resource on its way is full."""
    rate_F, free_R, growing_F = np.zeros(len(running_F)), bytes_per_s_R.astype(float).copy(), running_F.copy()
    while growing_F.any():
        flows_R = uses_FR[growing_F].sum(axis=0)
        used = flows_R > 0
        grows_R = np.where(used, free_R / np.maximum(flows_R, 1), np.inf)
        least = grows_R.min()
        rate_F[growing_F] += least
        free_R = free_R - least * flows_R
        full_R = used & (grows_R <= least * (1 + 1e-9))
        growing_F &= ~uses_FR[:, full_R].any(axis=1)
    return rate_F
