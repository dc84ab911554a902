"""The settings of the benchmark of skew: which load is run, and which load its plan was made for. Pure.

Shapes: E experts, G GPUs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.load import LoadProfile, hot_shares, lognormal_shares
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.topology import Topology

Floats = npt.NDArray[np.float64]
Solve = Callable[[Problem], Placement]

EXPERTS, TOP_K, WIDTH = 32, 4, 256
TOKENS = 512  # of a rank in a step
REDUNDANT_A_GPU = 1
COUNTS = 1e9  # assignments of a load: shares as whole numbers
SKEWS = (2.0, 4.0, 8.0)  # of the most popular expert; 8 is the most: every token then asks for it


@dataclass(frozen=True, eq=False)
class Setting:
    """`max_over_mean` is of experts or of GPUs with experts in their usual order, as `of` says."""

    name: str
    max_over_mean: float
    of: str  # experts, GPUs
    share_E: Floats  # that is run
    planned_E: Floats  # that the plan was made for


def settings(topology: Topology) -> tuple[Setting, ...]:
    """The same loads for every machine; those of nodes only where a unit has several GPUs."""
    return tuple(_settings(topology.gpu_count, units_of(topology)))


def _settings(gpus: int, unit_G: Sequence[int]) -> Iterator[Setting]:
    even_E = np.full(EXPERTS, 1 / EXPERTS)
    yield _known("even", 1.0, "experts", even_E)
    for skew in SKEWS:
        order_E = np.random.default_rng(int(skew)).permutation(EXPERTS)
        share_E = lognormal_shares(EXPERTS, skew, order_E)
        yield _known(f"lognormal {skew:g}", skew, "experts", share_E)
    yield _known("hot expert", SKEWS[-1], "experts", hot_shares(EXPERTS, (0,), SKEWS[-1]))

    def hot(ranks: Sequence[int], skew: float) -> Floats:
        experts = [expert for expert in range(EXPERTS) if expert * gpus // EXPERTS in ranks]
        return hot_shares(EXPERTS, experts, skew)

    yield _known("hot rank 2", 2.0, "GPUs", hot((0,), 2.0))
    yield _known("hot rank 3", 3.0, "GPUs", hot((0,), 3.0))
    firsts = [list(unit_G).index(unit) for unit in dict.fromkeys(unit_G)]
    if len(firsts) < gpus:
        yield _known("uneven inside units", 1.75, "GPUs", hot(firsts, 1.75))
    yield Setting("rotating hot rank", 2.5, "GPUs", hot((2,), 2.5), hot((1,), 2.5))
    yield Setting("burst", 3.0, "GPUs", hot((gpus - 1,), 3.0), even_E)


def _known(name: str, max_over_mean: float, of: str, share_E: Floats) -> Setting:
    return Setting(name, max_over_mean, of, share_E, share_E)


@dataclass(frozen=True, eq=False)
class Question:
    """All settings on one machine as one problem, a layer each, and the placements that are run."""

    problem: Problem
    placements: Mapping[str, Placement]
    settings: tuple[Setting, ...]


def question(
    topology: Topology, transport: str, methods: Mapping[str, Solve], loads: Collection[str] | None = None
) -> Question:
    """`methods` make the placements, each from the load that was known. `loads`: by name; None: all."""
    asked = tuple(one for one in settings(topology) if loads is None or one.name in loads)
    gpus = topology.gpu_count
    model = _model(len(asked))
    workload = Workload(TOKENS, "decode", "bf16", "bf16", transport)
    slots_per_gpu = EXPERTS // gpus + REDUNDANT_A_GPU
    load = _load(model, [one.share_E for one in asked], "run")
    problem = Problem(topology, model, load, workload, slots_per_gpu)
    planned = replace(problem, load=_load(model, [one.planned_E for one in asked], "planned for"))
    return Question(problem, {name: solve(planned) for name, solve in methods.items()}, asked)


def _model(layers: int) -> ModelSpec:
    return ModelSpec(
        name="benchmark of skew",
        architecture="synthetic",
        layers=layers,
        moe_layer_ids=tuple(range(layers)),
        experts=EXPERTS,
        top_k=TOP_K,
        hidden=WIDTH,
        expert_intermediate=WIDTH,
        dispatch_width=WIDTH,
        weight_dtype="bf16",
        source="made up for the benchmark of skew",
    )


def _load(model: ModelSpec, shares: Sequence[Floats], source: str) -> LoadProfile:
    counts_WLE = np.rint(np.array(shares) * COUNTS).astype(np.int64)[None]
    return LoadProfile(counts_WLE, model.moe_layer_ids, f"benchmark of skew, {source}")


def units_of(topology: Topology) -> list[int]:
    """unit_G: the NVLink domain of each GPU where domains span nodes, else its node."""
    spans = topology.domain_count < topology.node_count
    unit_G: list[int] = (topology.domain_G if spans else topology.node_G).tolist()
    return unit_G
