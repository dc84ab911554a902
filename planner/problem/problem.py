"""Problem: the question a solver is asked. Topology + model + load + workload + limits, checked once, so that no solver meets an impossible one."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.problem.objective import MEAN, Objective
from planner.problem.survival import Survival, least_slots_per_gpu
from planner.replica import Situation, find_rule
from planner.topology import Topology

TRANSPORTS = {
    "slot": "one message per token and slot (DeepEP low latency)",
    "rank": "one message per token and GPU (DeepEP on one node, DeepEP v2 direct)",
    "node": "one message per token and node over the NIC, then NVLink (DeepEP normal)",
    "allgather": "every GPU gets every token; volume independent of placement",
}
LARGEST_NAMED_EP = 512  # EP sizes beyond this are not worth naming in a message
BYTES_PER_ELEMENT = {"fp8": 1.0 + 4 / 128, "bf16": 2.0}  # fp8 carries one float32 scale per 128 elements


@dataclass(frozen=True)
class Workload:
    """One step of serving: how many tokens each rank brings, and how they travel."""

    tokens_per_rank: int = 128
    phase: str = "decode"
    dispatch_dtype: str = "bf16"
    combine_dtype: str = "bf16"
    transport: str = "slot"

    def __post_init__(self) -> None:
        if self.tokens_per_rank < 1:
            raise BadInput(f"tokens per rank is {self.tokens_per_rank}; it must be at least 1")
        if self.phase not in ("prefill", "decode"):
            raise BadInput(f"phase {self.phase!r} is neither prefill nor decode")
        if self.transport not in TRANSPORTS:
            raise BadInput(f"transport {self.transport!r} is unknown; known are {', '.join(TRANSPORTS)}")
        for dtype in (self.dispatch_dtype, self.combine_dtype):
            if dtype not in BYTES_PER_ELEMENT:
                raise BadInput(
                    f"dispatch or combine dtype {dtype!r} is unknown; known are {', '.join(BYTES_PER_ELEMENT)}"
                )


@dataclass(frozen=True, eq=False)
class Problem:
    """Which expert belongs in which slot? `load` has a row for every placed layer of the model, in that order."""

    topology: Topology
    model: ModelSpec
    load: LoadProfile
    workload: Workload
    slots_per_gpu: int
    replica_rule: str = "even"
    kv_floor_bytes: float = 0.0  # memory of each GPU that must stay free for the KV cache
    survive: Survival | None = None  # losses after which every expert must still have a slot
    objective: Objective = MEAN
    resplittable: bool = (
        False  # replicas must join all GPUs of a layer, so that load can be passed on between any two
    )

    def __post_init__(self) -> None:
        find_rule(self.replica_rule)
        if self.load.layer_ids != self.model.placed_layer_ids or self.load.experts != self.model.experts:
            raise ValueError("the load must have a row for every placed layer and a column for every expert")
        check_slots(self.model, self.gpus, self.slots_per_gpu * self.gpus - self.model.experts)
        if self.resplittable and self.redundant < self.gpus - 1:
            least = self.gpus - 1 + (-self.model.experts - self.gpus + 1) % self.gpus
            raise Infeasible(
                f"R = {self.redundant} cannot join {self.gpus} GPUs through shared experts: each redundant expert joins one more, so --resplittable needs "
                f"R >= {self.gpus - 1}; the smallest that divides is --redundant {least}"
            )
        if not self.kv_floor_bytes >= 0:
            raise BadInput(
                f"the memory floor for the KV cache is {self.kv_floor_bytes} bytes a GPU; it must be 0 or more"
            )
        if self.survive is not None:
            _check_survival(self, self.survive)
        if self.free_bytes_G.min() < self.kv_floor_bytes:
            gpu = int(self.free_bytes_G.argmin())
            fits = int(
                max((self.free_bytes_G[gpu] - self.kv_floor_bytes) / self.slot_bytes + self.slots_per_gpu, 0)
            )
            too_few = (
                f", too few for {self.model.experts} experts on {self.gpus} GPUs"
                if fits * self.gpus < self.model.experts
                else ""
            )
            raise Infeasible(
                f"GPU {gpu} keeps {self.free_bytes_G[gpu] / 1e9:.1f} GB beside {self.slots_per_gpu} slots of {self.slot_bytes / 1e9:.2f} GB, "
                f"less than the floor of {self.kv_floor_bytes / 1e9:.1f} GB; {fits} slots a GPU would fit{too_few}"
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
        """Compute speed of each GPU beside the fastest one (peak of its model times its own factor); None where all are alike."""
        dtype = "fp8" if self.model.weight_dtype == "fp8" else "bf16"
        peak_G = (
            np.array([gpu.model.peak_flops_per_s(dtype) for gpu in self.topology.gpus])
            * self.topology.speed_G
        )
        return None if (peak_G == peak_G[0]).all() else peak_G / peak_G.max()

    @property
    def fair_share(self) -> float:
        """Share of a layer's load that the fastest GPU has in perfect balance."""
        return 1 / self.gpus if self.speed_G is None else 1 / float(self.speed_G.sum())

    @cached_property
    def shares_LE(self) -> npt.NDArray[np.float64]:
        """Share of each layer's assignments that each expert gets; rows sum to 1; a layer without signal is even."""
        return self.load.shares_LE

    def situation(self, load: LoadProfile | None = None) -> Situation:
        """What the replica rule looks at, on `load` (the problem's own where none is given)."""
        return Situation(
            self.model,
            self.node_G,
            self.workload.tokens_per_rank,
            self.shares_LE if load is None else load.shares_LE,
        )

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
        """Memory of each GPU that its expert slots leave (attention weights, activations and KV cache have to fit in it)."""
        memory_G = np.array([gpu.model.memory_bytes for gpu in self.topology.gpus])
        return memory_G - self.slots_per_gpu * self.slot_bytes

    def with_rule(self, replica_rule: str) -> "Problem":
        return replace(self, replica_rule=replica_rule)


def least_redundant(model: ModelSpec, topology: Topology, survive: Survival | None) -> int:
    """The fewest redundant experts with which slots divide over the GPUs and the losses can be survived. Infeasible where no number does."""
    least = -model.experts % topology.gpu_count
    if survive is None:
        return least
    return max(
        least,
        least_slots_per_gpu(survive, model.experts, topology.node_G) * topology.gpu_count - model.experts,
    )


def _check_survival(problem: Problem, survive: Survival) -> None:
    """Infeasible with the smallest R that survives, and what fits in memory."""
    least = least_redundant(problem.model, problem.topology, survive)
    if problem.redundant >= least:
        return
    slots = (problem.model.experts + least) // problem.gpus
    memory = min(gpu.model.memory_bytes for gpu in problem.topology.gpus)
    fits = int(max(memory - problem.kv_floor_bytes, 0) / problem.slot_bytes)
    raise Infeasible(
        f"R = {problem.redundant} cannot survive the loss of {survive}: every one of {problem.model.experts} experts needs {survive.least_replicas} slots "
        f"on different {'nodes' if survive.node else 'GPUs'}; the smallest is --redundant {least}, {slots} slots a GPU; "
        f"memory fits {fits} slots of {problem.slot_bytes / 1e9:.2f} GB a GPU"
        + (", so take more GPUs" if fits < slots else "")
    )


def check_slots(model: ModelSpec, gpus: int, redundant: int) -> int:
    """Slots a GPU for R redundant experts on G GPUs. Infeasible with the nearest feasible R where the slots do not divide or cannot all differ."""
    least, most = -model.experts % gpus, model.experts * (gpus - 1)
    slots = model.experts + redundant
    if redundant < 0:
        raise Infeasible(
            f"{slots} slots cannot hold {model.experts} experts; the fewest redundant experts on {gpus} GPUs are {least}"
        )
    if redundant > most:
        raise Infeasible(
            f"{redundant} redundant experts give more than {model.experts} slots a GPU, but {model.name} has {model.experts} experts and none may sit "
            f"twice on one GPU; at most {most} are of use on {gpus} GPUs"
        )
    if slots % gpus:
        nearest = ", ".join(
            str(count) for count in range(max(least, redundant - slots % gpus), most + 1, gpus)[:3]
        )
        sizes = ", ".join(
            str(size)
            for size in range(1, min(slots, LARGEST_NAMED_EP) + 1)
            if slots % size == 0 and slots <= size * model.experts
        )
        raise Infeasible(
            f"{model.experts} experts + {redundant} redundant = {slots} slots do not divide over {gpus} GPUs; "
            f"use --redundant {nearest}" + (f" or --ep {sizes}" if sizes else "")
        )
    return slots // gpus
