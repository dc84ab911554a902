"""How a run is asked for, and the job that it becomes for one question and its placements.

Shapes: L rows of the job, E experts, R rows of a trace, K = top_k.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost import units
from planner.problem import Problem
from probes.dispatch.gemm.shapes import shape_of
from probes.dispatch.job import DispatchJob, Side


@dataclass(frozen=True)
class Settings:
    """How to run.

    `layers` None means all; `hidden` None means 64 on a CPU, 512 in an emulated cluster, the model's own
    width on GPUs; `tokens` None means 64, and as many as a phase needs in an emulated cluster.
    """

    layers: int | None = 4
    tokens: int | None = None
    hidden: int | None = None
    repeats: int = 5
    seed: int = 0
    timeout_seconds: float = 120.0
    device: str = "auto"  # auto, cpu, cuda
    tolerance: float | None = None  # None: what the law's error and the noise come to
    kernels: str = "auto"  # what sends on GPUs: auto, torch, deepep, nccl-ep
    cuda_graph: bool = False
    virtual: bool = False  # one process plays all ranks
    hosts: tuple[str, ...] = ()  # of the plan's nodes, for ranks that were launched; empty: any


def posed_job(
    problem: Problem,
    sides: Mapping[str, Side],
    layer_ids: tuple[int, ...],
    shares_LE: npt.NDArray[np.float64],
    settings: Settings,
    trace_LRK: npt.NDArray[np.integer] | None = None,
) -> DispatchJob:
    """The rows of these layers, each with its load, under these sides, for the question's workload."""
    model, workload = problem.model, problem.workload
    return DispatchJob(
        sides=sides,
        layer_ids=layer_ids,
        experts=model.experts,
        top_k=model.top_k,
        dispatch_width=model.dispatch_width,
        shares_LE=shares_LE,
        trace_LRK=trace_LRK,
        unit_G=units(problem),
        transport=workload.transport,
        dispatch_dtype=workload.dispatch_dtype,
        combine_dtype=workload.combine_dtype,
        hidden=settings.hidden,
        tokens_per_rank=workload.tokens_per_rank,
        repeats=settings.repeats,
        seed=settings.seed,
        timeout_seconds=settings.timeout_seconds,
        device=settings.device,
        expert=shape_of(model),
        kernels=settings.kernels,
        cuda_graph=settings.cuda_graph,
        virtual=settings.virtual,
    )
