"""Problem: the question a solver is asked.

Topology + model + load + workload + limits, checked once, so that no solver meets an impossible one.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem.objective import MEAN, Objective
from planner.problem.redundancy import check_joins, check_slots, least_redundant
from planner.problem.survival import Survival
from planner.problem.workload import Workload
from planner.replica import Situation, find_rule
from planner.topology import Topology


@dataclass(frozen=True, eq=False)
class Problem:
    """Which expert belongs in which slot? `load` has a row for every placed layer, in the model's order."""

    topology: Topology
    model: ModelSpec
    load: LoadProfile
    workload: Workload
    slots_per_gpu: int
    replica_rule: str = "even"
    kv_floor_bytes: float = 0.0  # memory of each GPU that must stay free for the KV cache
    survive: Survival | None = None  # losses after which every expert must still have a slot
    objective: Objective = MEAN
    resplittable: bool = False  # replicas join all GPUs of a layer: load can be passed on between any two

    def __post_init__(self) -> None:
        find_rule(self.replica_rule)
        if self.load.layer_ids != self.model.placed_layer_ids or self.load.experts != self.model.experts:
            raise ValueError("the load must have a row for every placed layer and a column for every expert")
        check_slots(self.model, self.gpus, self.redundant)
        shared = self.workload.attention_tp
        if self.gpus % shared:
            sizes = ", ".join(str(size) for size in range(1, self.gpus + 1) if self.gpus % size == 0)
            raise BadInput(f"--attention-tp {shared} does not divide {self.gpus} GPUs; use one of {sizes}")
        if self.resplittable:
            check_joins(self.model, self.gpus, self.redundant)
        if not self.kv_floor_bytes >= 0:
            floor = f"{self.kv_floor_bytes} bytes a GPU"
            raise BadInput(f"the memory floor for the KV cache is {floor}; it must be 0 or more")
        if self.survive is not None:
            self._check_survival(self.survive)
        self._check_memory()

    def _check_survival(self, survive: Survival) -> None:
        """Infeasible with the smallest R that survives, and what fits in memory."""
        least = least_redundant(self.model, self.topology, survive)
        if self.redundant >= least:
            return
        experts, places = self.model.experts, "nodes" if survive.node else "GPUs"
        slots = (experts + least) // self.gpus
        memory = min(gpu.model.memory_bytes for gpu in self.topology.gpus)
        fits = int(max(memory - self.kv_floor_bytes, 0) / self.slot_bytes)
        raise Infeasible(
            f"R = {self.redundant} cannot survive the loss of {survive}: "
            f"every one of {experts} experts needs {survive.least_replicas} slots on different {places}; "
            f"the smallest is --redundant {least}, {slots} slots a GPU; "
            f"memory fits {fits} slots of {self.slot_bytes / 1e9:.2f} GB a GPU"
            + (", so take more GPUs" if fits < slots else "")
            + self._placed_anew(survive, least)
        )

    def _placed_anew(self, survive: Survival, least: int) -> str:
        """What is enough for an engine that needs no copies; empty where that is no less."""
        enough = least_redundant(self.model, self.topology, survive, replaced=True)
        if enough >= least:
            return ""
        return f"; an engine that places experts anew after a loss needs R = {enough}, without --survive"

    def _check_memory(self) -> None:
        """Infeasible with the number of slots that would leave the floor."""
        gpu = int(self.free_bytes_G.argmin())
        free, floor = self.free_bytes_G[gpu], self.kv_floor_bytes
        if free >= floor:
            return
        fits = int(max((free - floor) / self.slot_bytes + self.slots_per_gpu, 0))
        experts, gpus = self.model.experts, self.gpus
        too_few = f", too few for {experts} experts on {gpus} GPUs" if fits * gpus < experts else ""
        slots = f"{self.slots_per_gpu} slots of {self.slot_bytes / 1e9:.2f} GB"
        raise Infeasible(
            f"GPU {gpu} keeps {free / 1e9:.1f} GB beside {slots}, "
            f"less than the floor of {floor / 1e9:.1f} GB; {fits} slots a GPU would fit{too_few}"
        )

    @property
    def gpus(self) -> int:
        return self.topology.gpu_count

    @property
    def slots(self) -> int:
        return self.gpus * self.slots_per_gpu

    @property
    def redundant(self) -> int:
        return self.slots - self.model.experts

    @property
    def node_G(self) -> npt.NDArray[np.int64]:
        return self.topology.node_G

    @cached_property
    def speed_G(self) -> npt.NDArray[np.float64] | None:
        """Compute speed of each GPU beside the fastest one; None where all are alike.

        It is the peak of the GPU's model times the GPU's own factor.
        """
        dtype = "fp8" if self.model.weight_dtype == "fp8" else "bf16"
        peaks = [gpu.model.peak_flops_per_s(dtype) for gpu in self.topology.gpus]
        peak_G = np.array(peaks) * self.topology.speed_G
        return None if (peak_G == peak_G[0]).all() else peak_G / peak_G.max()

    @property
    def fair_share(self) -> float:
        """Share of a layer's load that the fastest GPU has in perfect balance."""
        return 1 / self.gpus if self.speed_G is None else 1 / float(self.speed_G.sum())

    @cached_property
    def shares_LE(self) -> npt.NDArray[np.float64]:
        """Share of each layer's assignments that each expert gets.

        Rows sum to 1; a layer without signal is even.
        """
        return self.load.shares_LE

    def situation(self, load: LoadProfile | None = None) -> Situation:
        """What the replica rule looks at, on `load` (the problem's own where none is given)."""
        shares_LE = self.shares_LE if load is None else load.shares_LE
        return Situation(self.model, self.node_G, self.workload.tokens_per_rank, shares_LE)

    @property
    def spreads_over_nodes(self) -> bool:
        """Whether the rule prefers near replicas, so that replicas belong on distinct nodes."""
        return self.replica_rule.startswith("nearest") and self.topology.node_count > 1

    @property
    def least_replicas(self) -> int:
        """Slots that every expert needs."""
        return 1 if self.survive is None else self.survive.least_replicas

    @property
    def slot_bytes(self) -> float:
        """Weight bytes of one more slot on a GPU, over all placed layers."""
        return self.model.expert_bytes * len(self.model.placed_layer_ids)

    @property
    def free_bytes_G(self) -> npt.NDArray[np.float64]:
        """Memory of each GPU that its expert slots leave.

        Attention weights, activations and KV cache have to fit in it.
        """
        memory_G = np.array([gpu.model.memory_bytes for gpu in self.topology.gpus])
        return memory_G - self.slots_per_gpu * self.slot_bytes

    def with_rule(self, replica_rule: str) -> "Problem":
        return replace(self, replica_rule=replica_rule)
