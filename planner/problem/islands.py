"""Islands: GPUs of a layer that reach each other through experts that both hold, and so can hand load on.

A layer of one island is re-splittable.

Shapes: L layers, P slots, G GPUs.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def island_LG(expert_LP: npt.NDArray[np.integer], gpus: int) -> Ints:
    """The first GPU of the island of each GPU: those it reaches through shared experts.

    >>> island_LG(np.array([[0, 1, 0, 2, 3, 4]]), gpus=3).tolist()
    [[0, 0, 2]]
    """
    layers, slots = expert_LP.shape
    row_L1, gpu_P = np.arange(layers)[:, None], np.arange(slots) // (slots // gpus)
    island = np.tile(np.arange(gpus, dtype=np.int64), (layers, 1))
    experts = int(expert_LP.max()) + 1
    while True:
        first_LE = np.full((layers, experts), gpus, dtype=np.int64)
        np.minimum.at(first_LE, (row_L1, expert_LP), island[:, gpu_P])
        reached = first_LE[row_L1, expert_LP].reshape(layers, gpus, -1).min(axis=2)
        if (reached == island).all():
            return island
        island = reached


def islands_L(expert_LP: npt.NDArray[np.integer], gpus: int) -> Ints:
    """Into how many islands each layer's GPUs fall; 1 is re-splittable."""
    return np.asarray((island_LG(expert_LP, gpus) == np.arange(gpus)).sum(axis=1))
