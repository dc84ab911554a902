"""A table of counts that makes an engine's own balancer build a plan: for engines that take a load, no map.

Where no counts were found that steer the balancer to the plan's row of a layer, the row's counts are the
load, and what the balancer makes of it is served. `CountTable` says which layers these are, and `note` what
that costs.

Shapes: L layers, E experts, P slots.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.cost import cost
from planner.engines.common.balancer import Ids, copies_of, rebalanced
from planner.engines.common.steering import steered_counts
from planner.placement import Placement
from planner.problem import Problem

LARGEST = 1 << 20  # of a count that is a load


@dataclass(frozen=True, eq=False)
class CountTable:
    """Counts of each placed layer, and the placement that the balancer makes of them."""

    counts_LE: Ids
    served: Placement  # draft layers as the plan has them: the table has no row for them
    other: tuple[int, ...]  # the MoE layers in which that is not the plan's

    def decoder_rows(self, layers: int) -> list[list[int]]:
        """A row for each decoder layer, as the file has them; nothing reads those of dense layers."""
        held = dict(zip(self.served.layer_ids, self.counts_LE.tolist(), strict=True))
        dense_E = list(range(self.counts_LE.shape[1], 0, -1))
        return [held.get(layer, dense_E) for layer in range(layers)]


def count_table(placement: Placement, problem: Problem, groups: int = 1) -> CountTable:
    """The table for a placement. `groups`: of GPUs, to which the balancer deals experts before replicas."""
    load_LE, gpus = problem.load.shares_LE, placement.gpus
    counts, rows, other = [], [], []
    for wanted_P, load_E, layer in zip(placement.expert_LP, load_LE, placement.layer_ids, strict=True):
        counts_E, served_P = _layer(wanted_P, load_E, gpus, groups)
        if layer in problem.model.draft_layer_ids:
            served_P = wanted_P
        elif not _same(served_P, wanted_P, gpus):
            other.append(layer)
        counts.append(counts_E)
        rows.append(served_P)
    return CountTable(np.array(counts), Placement(np.array(rows), placement.layer_ids, gpus), tuple(other))


def note(title: str, table: CountTable, placement: Placement, problem: Problem, rule: str) -> str:
    """What the engine makes of the table, beside the plan, under the engine's own replica rule."""
    count, how = len(problem.model.moe_layer_ids), longer(placement, table.served, problem, rule)
    if not table.other:
        all_built = f"{title}'s own balancer builds the plan's placement in all {count} MoE layers"
        return f"{all_built} from the table: a step is predicted to take {how} than the plan's"
    first = ", ".join(map(str, table.other[:6]))
    which = first if len(table.other) <= 6 else f"{first} and {len(table.other) - 6} more"
    return (
        f"WARNING: {title}'s own balancer builds the plan's placement in {count - len(table.other)} of "
        f"{count} MoE layers. No counts that make it do so were found for layer {which}: there it balances "
        f"the plan's load by itself, and a step is predicted to take {how} than the plan's"
    )


def longer(placement: Placement, served: Placement, problem: Problem, rule: str) -> str:
    """By how much a predicted step of `served` is longer than that of `placement`, in words."""
    part = longer_by(placement, served, problem, rule)
    return f"{abs(part):.1%} {'longer' if part > -0.0005 else 'shorter'}"


def longer_by(placement: Placement, served: Placement, problem: Problem, rule: str) -> float:
    """The part by which a predicted step of `served` is longer than that of `placement`."""
    asked = replace(problem, replica_rule=rule)
    return cost(asked, served).total_seconds / cost(asked, placement).total_seconds - 1


def _layer(wanted_P: Ids, load_E: npt.NDArray[np.float64], gpus: int, groups: int) -> tuple[Ids, Ids]:
    """counts_E of one layer, and the row that the balancer makes of them."""
    slots = len(wanted_P)
    counts_E = steered_counts(wanted_P, len(load_E), gpus, groups)
    served_P = None if counts_E is None else rebalanced(counts_E, slots, gpus, groups)
    if counts_E is not None and served_P is not None and _same(served_P, wanted_P, gpus):
        return counts_E, served_P
    return _of_load(load_E, slots, gpus, groups)


def _of_load(load_E: npt.NDArray[np.float64], slots: int, gpus: int, groups: int) -> tuple[Ids, Ids]:
    """The load as counts that leave the balancer nothing to chance, and what it makes of them."""
    scaled_E = 1 + np.rint(load_E / max(float(load_E.max()), 1e-300) * LARGEST).astype(np.int64)
    place_E = np.empty(len(load_E), dtype=np.int64)
    place_E[np.argsort(scaled_E, kind="stable")] = np.arange(len(load_E))
    for step in range(1, 4096):
        counts_E = scaled_E + place_E * step
        served_P = rebalanced(counts_E, slots, gpus, groups)
        if served_P is not None and copies_of(counts_E.astype(np.float32), slots) is not None:
            return counts_E, served_P
    raise AssertionError("some step sets all counts apart")


def _same(one_P: Ids, other_P: Ids, gpus: int) -> bool:
    """Whether each GPU holds the same experts, in whatever slots."""
    one_GS, other_GS = (np.sort(expert_P.reshape(gpus, -1), axis=1) for expert_P in (one_P, other_P))
    return bool((one_GS == other_GS).all())
