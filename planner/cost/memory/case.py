"""A case: all that the memory of a GPU depends on, cheap to make: others are tried in its place."""

from dataclasses import dataclass

from planner.model import ModelSpec
from planner.problem import Problem, Workload, check_slots
from planner.topology import Topology


@dataclass(frozen=True)
class Case:
    """One model, step and number of GPUs. The GPU is the one with the least memory: all hold as much."""

    model: ModelSpec
    workload: Workload
    gpus: int
    slots_per_gpu: int
    gpu: int
    memory_bytes: float
    kv_floor_bytes: float = 0.0  # to keep for the KV cache in place of the planned batch's; 0: none was given
    one_hop: bool = True  # NVLink or one node reaches every GPU

    @property
    def slots(self) -> int:
        return self.gpus * self.slots_per_gpu

    @property
    def redundant(self) -> int:
        return self.slots - self.model.experts

    @property
    def slot_bytes(self) -> float:
        """Weight bytes of one slot, over all placed layers."""
        return self.model.expert_bytes * len(self.model.placed_layer_ids)

    @property
    def fewest_slots(self) -> int:
        """Slots a GPU that hold every expert once."""
        return -(-self.model.experts // self.gpus)

    @property
    def planned_requests(self) -> int:
        """Requests that a group of GPUs holds at once by the plan.

        In decode as many as its tokens; in prefill the prompts of a chunk, at least one.
        """
        tokens = self.workload.tokens_per_rank * self.workload.attention_tp
        return tokens if self.workload.phase == "decode" else -(-tokens // self.workload.prompt_tokens)


def case_of(problem: Problem) -> Case:
    floor = problem.kv_floor_bytes
    return pose_case(problem.model, problem.topology, problem.workload, problem.redundant, floor)


def pose_case(
    model: ModelSpec, topology: Topology, workload: Workload, redundant: int, kv_floor_bytes: float = 0.0
) -> Case:
    """The case of a question with R redundant experts; Infeasible where they do not divide over the GPUs."""
    memory = [gpu.model.memory_bytes for gpu in topology.gpus]
    gpu = memory.index(min(memory))
    return Case(
        model,
        workload,
        topology.gpu_count,
        check_slots(model, topology.gpu_count, redundant, topology.ep_sizes()),
        gpu,
        memory[gpu],
        kv_floor_bytes,
        one_hop=min(topology.node_count, topology.domain_count) == 1,
    )
