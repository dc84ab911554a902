"""Lower bound on the predicted seconds of every layer, with the argument that gives it.

Dispatch, expert compute and combine are bounded apart. The three are bounded one by one, for any placement;
that one placement reaches all three at once is not said. Within the cost model: no placement is *predicted*
to take less.

Shapes: W windows, L layers, E experts, G GPUs, C replica counts (entry c - 1 is count c).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.bounds.load import Bound, load_bound
from planner.bounds.picks import touched_slots
from planner.bounds.traffic import Least, PhaseBound, least_messages, phase_bound, strongest
from planner.cost import Floats, PhaseConstants, StepParts, compute_rates, constants_of, message_bytes
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem
from planner.replica import find_rule

# every replica serves one rank at least
OWN_RANK = ("nearest", "nearest-static", "nearest-dynamic", "fixed-by-source")
BY_COUNT = ("even", "row-index", "hashed")  # shares follow from the count of replicas alone
PARTS = ("dispatch", "compute", "combine")


@dataclass(frozen=True, eq=False)
class TimeBound(StepParts):
    """Per layer: seconds of each part of a step that no placement is predicted below, start-up included, and
    why.
    """

    dispatch_seconds_L: Floats
    compute_seconds_L: Floats
    combine_seconds_L: Floats
    dispatch_reason_L: tuple[str, ...]
    compute_reason_L: tuple[str, ...]
    combine_reason_L: tuple[str, ...]

    def reason(self, part: str) -> str:
        """The argument that bounds the most of this part's seconds; ties by name."""
        reason_L, seconds_L = getattr(self, f"{part}_reason_L"), getattr(self, f"{part}_seconds_L")
        seconds: dict[str, float] = {}
        for name, value in zip(reason_L, seconds_L, strict=True):
            seconds[name] = seconds.get(name, 0.0) + float(value)
        return max(sorted(seconds), key=lambda name: seconds[name])


def time_bound(
    problem: Problem, load: LoadProfile | None = None, *, peak_load_L: Floats | None = None
) -> TimeBound:
    """The bound on `load` (the problem's own where none is given).

    `peak_load_L`: assignments a step, over the GPU's speed beside the fastest, that the busiest GPU of any
    placement carries at least; where more is known than `load_bound` says.
    """
    load = load or problem.load
    if peak_load_L is None:
        sent = problem.workload.tokens_per_rank * problem.gpus * problem.model.top_k
        peak_load_L = share_bound(problem, load).load_L * sent
    constants, (dispatch_bytes, combine_bytes) = constants_of(problem), message_bytes(problem)
    least = Least(least_messages(problem, load), peak_load_L, relative_speed_G(problem))
    dispatch = phase_bound(problem, load, least, constants.dispatch, dispatch_bytes, back=False)
    combine = phase_bound(problem, load, least, constants.combine, combine_bytes, back=True)
    compute = _compute_bound(problem, load.shares_LE, peak_load_L)
    return TimeBound(
        dispatch.seconds_L + _start_seconds(problem, constants.dispatch),
        compute.seconds_L,
        combine.seconds_L + _start_seconds(problem, constants.combine),
        *(part.reason_L for part in (dispatch, compute, combine)),
    )


def share_bound(problem: Problem, load: LoadProfile) -> Bound:
    """The bound on the busiest GPU, as a share of each layer's load."""
    even = problem.replica_rule == "even"
    return load_bound(load.shares_LE, problem.gpus, problem.slots_per_gpu, even=even, speed_G=problem.speed_G)


def bound_over_windows(bounds: Sequence[TimeBound], *, worst: bool = False) -> Floats:
    """seconds_L that no placement is below on average over the windows, or in its worst one; from one bound a
    window.

    Each window's bound holds for every placement, so their mean does for the mean: valid, but it lets every
    window have a placement of its own. A mean to which a multiple of the deviation is added is no less than
    the mean.
    """
    seconds_WL = np.array([bound.layer_seconds_L for bound in bounds])
    return np.asarray(seconds_WL.max(axis=0) if worst else seconds_WL.mean(axis=0))


def relative_speed_G(problem: Problem) -> Floats:
    """What a GPU's load is divided by in a bound on the busiest: `problem.speed_G`, 1 where all are alike."""
    return np.ones(problem.gpus) if problem.speed_G is None else problem.speed_G


def _start_seconds(problem: Problem, constants: PhaseConstants) -> float:
    return constants.start_seconds(problem.gpus, problem.slots_per_gpu)


def _compute_bound(problem: Problem, share_LE: Floats, peak_load_L: Floats) -> PhaseBound:
    """The slowest GPU's expert compute: by its load, by the load of all, by the weights read."""
    top_k, tokens = problem.model.top_k, problem.workload.tokens_per_rank * problem.gpus
    rates = compute_rates(problem)
    idle, assignment_G = float(rates.fixed_G.min()), rates.operations_G + rates.row_G
    mapped_L = [layer_id < problem.model.layers for layer_id in problem.model.placed_layer_ids]
    parts = {mapped: parts_CC(problem, mapped=mapped) for mapped in sorted(set(mapped_L))}
    chosen_LE = tokens * np.minimum(top_k * share_LE, 1.0)  # tokens; none chooses twice
    touched_L = [
        touched_slots(row_E, parts[mapped], problem.redundant)
        for row_E, mapped in zip(chosen_LE, mapped_L, strict=True)
    ]
    together = idle + tokens * top_k / (1 / assignment_G).sum()
    # with the weights come the vectors: counted in slots of the GPU where they weigh least
    vectors = tokens * top_k * float((rates.row_G / rates.weights_G).min())
    return strongest(
        [
            ("busiest GPU", idle + peak_load_L * (assignment_G * relative_speed_G(problem)).min()),
            ("all GPUs", np.full(len(share_LE), together)),
            ("weights read", idle + (np.array(touched_L) + vectors) / (1 / rates.weights_G).sum()),
        ]
    )


def parts_CC(problem: Problem, *, mapped: bool = True) -> list[Floats]:
    """For 1 to C replicas, shares of an expert's assignments that touch the fewest slots under the rule;
    `mapped` is False for draft layers.
    """
    counts = range(1, min(problem.gpus, problem.redundant + 1) + 1)
    rule, gpus = problem.replica_rule, problem.gpus
    if rule in OWN_RANK and (mapped or rule in ("nearest", "fixed-by-source")):
        return [np.array([1 - (count - 1) / gpus] + [1 / gpus] * (count - 1)) for count in counts]
    if rule in BY_COUNT and (mapped or rule != "row-index"):
        situation, layer_ids = problem.situation(), problem.model.placed_layer_ids[:1]
        alone = (Placement(np.zeros((1, count)).astype(int), layer_ids, gpus) for count in counts)
        return [next(iter(find_rule(rule)(placement, situation)))[0] for placement in alone]
    return [np.array([1.0])] * len(counts)
