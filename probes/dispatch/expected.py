"""What the cost model says of one row under one side, by expectation and by the bytes that the run draws.

Shapes: L rows of the job, P slots, G GPUs (one rank each), R resources.
"""

from collections.abc import Sequence

import numpy as np

from planner.cost import (
    Cost,
    Floats,
    PhaseConstants,
    compute_seconds_G,
    constants_of,
    efficiency_R,
    pipelined_seconds,
)
from planner.problem import Problem
from probes.dispatch.job import DispatchJob
from probes.dispatch.prediction import Prediction
from probes.dispatch.timed import Expected


class Expectation:
    """What is predicted of one side: `problem` has the tokens and width of the run, `found` a layer a row."""

    def __init__(self, job: DispatchJob, problem: Problem, found: Cost) -> None:
        self._job, self._problem, self._found = job, problem, found
        self._overlaps = job.device != "cuda"  # with NCCL leg follows leg

    def of(self, row: int, predicted: Prediction) -> Expected:
        job, problem, found = self._job, self._problem, self._found
        constants, topology = constants_of(problem), problem.topology
        there, back = job.record_bytes
        to_R = [topology.there_and_back(hop_GG.astype(np.float64)) for hop_GG in predicted.hops]
        rate_R = {
            "dispatch": topology.capacity_R * efficiency_R(problem, constants.dispatch),
            "combine": topology.capacity_R * efficiency_R(problem, constants.combine),
        }
        hops_R = {
            "dispatch": [sent_R * there / rate_R["dispatch"] for sent_R, _ in to_R],
            "combine": [sent_R * back / rate_R["combine"] for _, sent_R in to_R],
        }
        start = {"dispatch": self._start(constants.dispatch), "combine": self._start(constants.combine)}
        fill = {phase: self._fill(seconds) for phase, seconds in hops_R.items()}
        drawn_R = {phase: np.sum(seconds, axis=0) for phase, seconds in hops_R.items()}
        compute_G = self._compute_G(predicted)
        return Expected(
            modelled={
                "dispatch": float(found.dispatch_seconds_L[row]) + fill["dispatch"],
                "compute": float(found.compute_seconds_L[row]),
                "combine": float(found.combine_seconds_L[row]) + fill["combine"],
            },
            drawn={
                **{phase: start[phase] + _most(drawn_R[phase]) + fill[phase] for phase in start},
                "compute": float(compute_G.max()),
            },
            drawn_R=drawn_R,
            start={phase: start[phase] + fill[phase] for phase in start},
            bytes_GG={
                "dispatch": predicted.dispatch_bytes_GG.astype(np.float64),
                "combine": predicted.combine_bytes_GG.astype(np.float64),
            },
            bytes_per_s_R=rate_R,
            compute_G=compute_G,
        )

    def _start(self, constants: PhaseConstants) -> float:
        return constants.start_seconds(self._problem.gpus, self._problem.slots_per_gpu)

    def _fill(self, hops: Sequence[Floats]) -> float:
        """What a pipeline takes beside its slowest resource: a part's way through the other hops.

        Engines' kernels have parts so small that it is nothing; this run has `chunks` of them.
        """
        hops_HR = np.array(hops)
        chunks = self._job.chunks if self._overlaps else 1
        return pipelined_seconds(hops_HR, chunks) - pipelined_seconds(hops_HR)

    def _compute_G(self, predicted: Prediction) -> Floats:
        """By the assignments drawn; a GPU reads the weights of an expert that any source asks it for."""
        received_GE = predicted.received_SGE.sum(axis=0)
        touched_G = (received_GE > 0).sum(axis=1).astype(np.float64)
        return compute_seconds_G(self._problem, received_GE.sum(axis=1).astype(np.float64), touched_G)


def _most(seconds_R: Floats) -> float:
    return float(seconds_R.max()) if len(seconds_R) else 0.0
