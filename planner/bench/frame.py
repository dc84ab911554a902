"""What a study of the benchmark gets and gives: peers, synthetic instances, and a table of flat rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.topology import read_topology

Policy = Callable[[npt.NDArray[np.float64], int, int, int, int], npt.NDArray[np.int64]]
"""expert_LP = policy(load_LE, slots, groups, nodes, gpus)"""


@dataclass(frozen=True)
class Table:
    """Rows with the same keys each: "instance" and "method" first, then figures with their units in their names."""

    title: str
    rows: tuple[dict[str, object], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peers:
    """Balancers of others by name, run beside ours in the same process; none where no wheel was given."""

    policies: Mapping[str, Policy] = field(default_factory=dict)

    @property
    def vllm_policy(self) -> Policy | None:
        return next((policy for name, policy in self.policies.items() if name.startswith("vLLM")), None)

    @property
    def vllm(self) -> Callable[[Problem], Placement] | None:
        """VLLM's policy over the whole machine at once, as a method; None without its wheel."""
        return as_method(self.vllm_policy) if self.vllm_policy else None


def as_method(policy: Policy) -> Callable[[Problem], Placement]:
    """A policy over the whole machine at once (one group, one node) as a method of ours. It gets counts, for one of them adds 1 to each."""

    def solve(problem: Problem) -> Placement:
        counts_LE = problem.load.total_LE.astype(np.float64)
        return Placement(
            policy(counts_LE, problem.slots, 1, 1, problem.gpus), problem.model.placed_layer_ids, problem.gpus
        )

    return solve


@dataclass(frozen=True)
class Instance:
    """A shape and a synthetic load: lognormal expert popularity, with sigma 1 about as skewed as published DeepSeek-R1 counts."""

    name: str
    layers: int
    experts: int
    slots_per_gpu: int
    machine: str
    sigma: float = 1.0
    top_k: int = 8


def synthetic_problem(instance: Instance, seed: int = 0, replica_rule: str = "even") -> Problem:
    """The instance as a problem; one window."""
    layer_ids = tuple(range(instance.layers))
    model = ModelSpec(
        "synthetic",
        "synthetic",
        instance.layers,
        layer_ids,
        instance.experts,
        instance.top_k,
        7168,
        128,
        7168,
        "fp8",
        "benchmark",
    )
    tokens_LE = (
        np.random.default_rng(seed).lognormal(0.0, instance.sigma, (instance.layers, instance.experts)) * 1e6
    )
    load = LoadProfile(
        tokens_LE.astype(np.int64)[None], layer_ids, f"lognormal(0, {instance.sigma}), seed {seed}"
    )
    return Problem(
        read_topology(instance.machine), model, load, Workload(), instance.slots_per_gpu, replica_rule
    )
