"""What a calibration runs: placements on loads, with several numbers of tokens. One job a number of tokens.

Shapes: L rows of a job (a layer with a load), E experts, P slots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.cost import cost
from planner.load import LoadProfile, lognormal_shares
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule
from probes.calibration.outcome import Observed
from probes.dispatch.expected import Expectation
from probes.dispatch.job import DispatchJob, Side
from probes.dispatch.posing import Settings, posed_job
from probes.dispatch.report import DispatchReport
from probes.dispatch.seen import PHASES
from probes.dispatch.timed import Timed

SKEWS = (2.0, 4.0)  # the busiest expert beside the mean; the plan's own load comes before
PARTS = (4, 2, 1)  # of the tokens that are asked for
RANDOM = ("random-0", "random-1")  # experts renamed: as legal as the placement they are made of
COUNTS = 1_000_000  # assignments of a layer, in a load that is made up


@dataclass(frozen=True, eq=False)
class Asked:
    """The question with the tokens of one job, its placements by name, and which layers are run."""

    problem: Problem
    placements: Mapping[str, Placement]
    loads: Mapping[str, LoadProfile]
    layers: tuple[int, ...]  # places in the plan's rows

    @property
    def rows(self) -> list[tuple[str, int]]:
        """(load, layer) of each row of the job."""
        return [(load, layer) for load in self.loads for layer in self.layers]

    @property
    def names(self) -> list[str]:
        """Of each row, for what is left out: a load with its tokens."""
        return [f"{load}, {self.problem.workload.tokens_per_rank} tokens" for load, _ in self.rows]

    def at(self, load: str) -> Problem:
        return replace(self.problem, load=self.loads[load])


def asked_of(
    problem: Problem, placements: Mapping[str, Placement], layers: Sequence[int], tokens: int, seed: int
) -> Asked:
    """With random placements beside those given, and loads of known skew beside the plan's own."""
    workload = replace(problem.workload, tokens_per_rank=tokens)
    last = placements[max(placements)]
    renamed = {name: _renamed(last, problem, seed + number) for number, name in enumerate(RANDOM)}
    loads = {"the plan's load": problem.load}
    loads |= {
        f"skew {skew:g}": _skewed(problem, skew, seed) for skew in SKEWS if skew <= problem.model.experts
    }
    return Asked(replace(problem, workload=workload), {**placements, **renamed}, loads, tuple(layers))


def _renamed(placement: Placement, problem: Problem, seed: int) -> Placement:
    """Every layer's experts in each other's slots: no rule is broken that was kept."""
    draw = np.random.default_rng([seed, 7])
    rows = [draw.permutation(problem.model.experts)[row_P] for row_P in placement.expert_LP]
    return Placement(np.array(rows), placement.layer_ids, placement.gpus)


def _skewed(problem: Problem, skew: float, seed: int) -> LoadProfile:
    draw, experts = np.random.default_rng([seed, 8]), problem.model.experts
    shares_LE = [lognormal_shares(experts, skew, draw.permutation(experts)) for _ in problem.load.layer_ids]
    counts_WLE = np.rint(np.array(shares_LE) * COUNTS).astype(np.int64)[None]
    return LoadProfile(counts_WLE, problem.load.layer_ids, f"made up, skew {skew:g}")


def job_of(asked: Asked, settings: Settings) -> DispatchJob:
    problem = asked.problem
    shares_LE = np.stack([asked.loads[load].shares_LE[layer] for load, layer in asked.rows])
    return posed_job(
        problem,
        {name: _side(asked, placement) for name, placement in asked.placements.items()},
        tuple(problem.load.layer_ids[layer] for _, layer in asked.rows),
        shares_LE,
        settings,
    )


def _side(asked: Asked, placement: Placement) -> Side:
    rule = find_rule(asked.problem.replica_rule)
    shares = {load: list(rule(placement, asked.at(load).situation())) for load in asked.loads}
    layers = [layer for _, layer in asked.rows]
    share_LSP = np.stack([shares[load][layer] for load, layer in asked.rows])
    return Side(placement.expert_LP[layers], share_LSP, asked.problem.replica_rule)


def observed_of(job: DispatchJob, asked: Asked, report: DispatchReport) -> list[Observed]:
    """Every row under every placement, beside what is expected of vectors as wide as the run's."""
    found: list[Observed] = []
    wide = replace(asked.problem, model=replace(asked.problem.model, dispatch_width=job.width))
    for side, placement in asked.placements.items():
        priced = {load: cost(replace(wide, load=asked.loads[load]), placement) for load in asked.loads}
        for row, (load, layer) in enumerate(asked.rows):
            one = priced[load]
            expected = Expectation(job, wide, one).of(layer, report.cells[side][row].predicted)
            seconds_GN = {phase: report.cells[side][row].seconds_GN(phase) for phase in PHASES}
            timed = Timed(side, job.layer_ids[row], row, seconds_GN, expected)
            found.append(Observed(timed, wide, asked.names[row]))
    return found
