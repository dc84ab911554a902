"""Goals: a peak that no packing of the replicas at hand beats, and how near to it a layer is worth the work.

Shapes: L layers, P slots, G GPUs.
"""

import numpy as np

from planner.solvers.kernels.packing import Loads

COARSEST = 5e-4  # above its goal a GPU is left alone, relative to it
STEPS = 16  # of the same, in steps of what a swap can move


def least_peaks(value_LP: Loads, gpus: int, speed_LG: Loads | None = None) -> Loads:
    """A peak (load over speed) that no packing of these replicas beats.

    The mean, or the largest replica with the smallest company on the fastest GPU.
    """
    speed_LG = np.ones((1, gpus)) if speed_LG is None else speed_LG
    ordered_LP = np.sort(value_LP, axis=1)
    company_L = ordered_LP[:, : value_LP.shape[1] // gpus - 1].sum(axis=1)
    mean_L = value_LP.sum(axis=1) / speed_LG.sum(axis=1)
    largest_L = (ordered_LP[:, -1] + company_L) / speed_LG.max(axis=1)
    least_L: Loads = np.maximum(mean_L, largest_L)
    return least_L


def tolerances(value_LP: Loads, gpus: int) -> Loads:
    """How near to its least peak a layer is worth the work, relative to its mean load.

    Some steps between the amounts that swaps of a GPU can move.
    """
    slots = value_LP.shape[1]
    swaps = slots * slots // gpus  # of one GPU, about
    mean_L = value_LP.sum(axis=1) / gpus
    step_L = value_LP.std(axis=1) / np.where(mean_L > 0, mean_L, 1.0) / swaps
    tolerance_L: Loads = np.minimum(step_L * STEPS, COARSEST)
    return tolerance_L
