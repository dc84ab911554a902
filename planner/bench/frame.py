"""What a study of the benchmark gets and gives: peers, synthetic instances, and a table of flat rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.solvers import Progress
from planner.topology import read_topology

Case = TypeVar("Case")

Policy = Callable[[npt.NDArray[np.float64], int, int, int, int], npt.NDArray[np.int64]]
"""expert_LP = policy(load_LE, slots, groups, nodes, gpus)"""


@dataclass(frozen=True)
class Table:
    """Rows with the same keys each: "instance" and "method", then figures with units in their names."""

    title: str
    rows: tuple[dict[str, object], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peers:
    """Balancers of others by name, run beside ours in the same process; none where no wheel was given."""

    policies: Mapping[str, Policy] = field(default_factory=dict)
    figures: Path | None = None  # a wheel, or a folder of CSVs, with seconds that others have measured

    @property
    def vllm_policy(self) -> Policy | None:
        return next((policy for name, policy in self.policies.items() if name.startswith("vLLM")), None)

    @property
    def vllm(self) -> Callable[[Problem], Placement] | None:
        """VLLM's policy over the whole machine at once, as a method; None without its wheel."""
        return as_method(self.vllm_policy) if self.vllm_policy else None


def as_method(policy: Policy) -> Callable[[Problem], Placement]:
    """A policy over the whole machine at once (one group, one node) as a method of ours.

    It gets counts, for one of them adds 1 to each.
    """

    def solve(problem: Problem) -> Placement:
        counts_LE, layer_ids = problem.load.total_LE.astype(np.float64), problem.model.placed_layer_ids
        return Placement(policy(counts_LE, problem.slots, 1, 1, problem.gpus), layer_ids, problem.gpus)

    return solve


@dataclass(frozen=True)
class Instance:
    """A shape and a synthetic load: lognormal expert popularity.

    With sigma 1 it is about as skewed as published DeepSeek-R1 counts.
    """

    name: str
    layers: int
    experts: int
    slots_per_gpu: int
    machine: str
    sigma: float = 1.0
    top_k: int = 8


def synthetic_problem(instance: Instance, seed: int = 0, replica_rule: str = "even") -> Problem:
    """The instance as a problem; one window."""
    shape = instance.layers, instance.experts
    model = synthetic_model("synthetic", *shape, instance.top_k, hidden=7168, expert_intermediate=128)
    tokens_LE = np.random.default_rng(seed).lognormal(0.0, instance.sigma, shape) * 1e6
    source = f"lognormal(0, {instance.sigma}), seed {seed}"
    load = LoadProfile(tokens_LE.astype(np.int64)[None], model.moe_layer_ids, source)
    topology = read_topology(instance.machine)
    return Problem(topology, model, load, Workload(), instance.slots_per_gpu, replica_rule)


def synthetic_model(
    name: str,
    layers: int,
    experts: int,
    top_k: int,
    *,
    hidden: int,
    expert_intermediate: int,
    dtype: str = "fp8",
) -> ModelSpec:
    """A model made up for a study; experts in every layer."""
    return ModelSpec(
        name=name,
        architecture="synthetic",
        layers=layers,
        moe_layer_ids=tuple(range(layers)),
        experts=experts,
        top_k=top_k,
        hidden=hidden,
        expert_intermediate=expert_intermediate,
        dispatch_width=hidden,
        weight_dtype=dtype,
        source="benchmark",
    )


def each(
    cases: Sequence[Case], progress: Progress | None, name: Callable[[Case], str] = str
) -> Iterator[Case]:
    """The cases one after the other; whoever waits is told which one begins."""
    for number, case in enumerate(cases):
        if progress is not None:
            progress(number / len(cases), name(case))
        yield case
