"""Placement: which expert sits in which slot. One integer array; everything else is derived.

Shapes: L layers (the model's placed layers), P slots, G GPUs, S = P / G slots a GPU. GPU of slot p is p // S.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Placement:
    """expert_LP[l, p] is the expert in slot p of layer `layer_ids[l]`.

    Any array is accepted: `planner.problem.violations` is the judge.

    >>> placement = Placement(np.array([[0, 1, 1, 2]]), layer_ids=(3,), gpus=2)
    >>> placement.slots_per_gpu, placement.replicas_LE(3).tolist()
    (2, [[1, 2, 1]])
    """

    expert_LP: npt.NDArray[np.int64]
    layer_ids: tuple[int, ...]
    gpus: int

    def __post_init__(self) -> None:
        if self.expert_LP.ndim != 2 or not np.issubdtype(self.expert_LP.dtype, np.integer):
            given = f"{self.expert_LP.dtype} {self.expert_LP.shape}"
            raise TypeError(f"expert_LP must be a two-dimensional integer array, not {given}")
        object.__setattr__(self, "expert_LP", np.array(self.expert_LP, dtype=np.int64))
        self.expert_LP.flags.writeable = False

    @property
    def slots(self) -> int:
        return int(self.expert_LP.shape[1])

    @property
    def slots_per_gpu(self) -> int:
        return self.slots // self.gpus

    @property
    def gpu_P(self) -> npt.NDArray[np.int64]:
        """GPU of each slot."""
        return np.arange(self.slots) // self.slots_per_gpu

    def replicas_LE(self, experts: int) -> npt.NDArray[np.int64]:
        """How many slots hold each expert."""
        layers = len(self.expert_LP)
        flat = (np.arange(layers)[:, None] * experts + self.expert_LP).ravel()
        return np.bincount(flat, minlength=layers * experts).reshape(layers, experts)
