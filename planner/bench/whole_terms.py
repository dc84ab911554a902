"""The terms of a measured step: the question that its server answered, and what moeplan's cost says of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import floor

import numpy as np

from planner.bench.whole_rows import MACHINES, Row
from planner.cost import Asked, MoeSeconds, cost, moe_seconds, sliced_cost, step_terms, ttft_terms
from planner.load import LoadProfile
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.topology import Topology, read_topology

WIDE = 8  # attention groups beyond which engines exchange tokens point to point


@dataclass(frozen=True)
class Measured:
    """A row with the seconds of its terms, before any calibration."""

    row: Row
    step: dict[str, float]
    first_token: dict[str, float]
    least_seconds: float = 0.0  # to read its caches and the experts it touches, at the rates of data sheets

    @property
    def values(self) -> dict[str, str | None]:
        """Of the factors of the law."""
        gpu = MACHINES[self.row.system][2]
        return {"gpu": gpu, "engine": self.row.engine, "weights": self.row.model.weight_dtype}


def measured(row: Row) -> Measured:
    """The row's terms. The load that was served is not known: even, on the default placement."""
    per_rank = row.requests / row.attention_tp
    near = max(floor(per_rank), 1)
    here, beyond = (_problem(row, tokens) for tokens in (near, near + 1))
    moe = [
        (first + (second - first) * (per_rank - near)) * len(row.model.moe_layer_ids)
        for first, second in zip(*(_moe(one, sliced=row.sliced) for one in (here, beyond)), strict=True)
    ]
    asked = _asked(row)
    step = step_terms(here, asked, MoeSeconds(*moe))
    least = step["cache"] + _experts_read(row) / float(here.topology.memory_bytes_per_s_G.min())
    return Measured(row, step, ttft_terms(here, asked), least)


def possible(rows: Iterable[Measured]) -> list[Measured]:
    """Without those that took less than reading takes: such servers had fewer requests open than listed."""
    return [one for one in rows if one.row.tpot_seconds >= one.least_seconds]


def _experts_read(row: Row) -> float:
    """Bytes of the experts that a step's tokens touch under an even load, on each GPU."""
    model = row.model
    touched = model.experts * (1 - (1 - model.top_k / model.experts) ** (row.requests * row.groups))
    return float(touched * model.expert_bytes * len(model.moe_layer_ids) / row.gpus)


def _asked(row: Row) -> Asked:
    return Asked(
        model=replace(row.model, draft_layer_ids=()),
        attention_tp=row.attention_tp,
        groups=row.groups,
        decodes=True,
        tokens=row.requests,
        prompt_tokens=float(row.prompt_tokens),
        output_tokens=float(row.output_tokens),
        disaggregated=row.disaggregated,
    )


def _moe(problem: Problem, *, sliced: bool) -> MoeSeconds:
    """Of the one layer that a problem of this study has."""
    if sliced:
        return moe_seconds(problem, sliced_cost(problem))
    experts_LP = np.arange(problem.model.experts)[None]
    placement = Placement(experts_LP, problem.model.placed_layer_ids, problem.gpus)
    return moe_seconds(problem, cost(problem, placement))


def _problem(row: Row, tokens_per_rank: int) -> Problem:
    """One layer of the row's model; all are alike under an even load."""
    model = replace(row.model, moe_layer_ids=row.model.moe_layer_ids[:1], draft_layer_ids=())
    load = LoadProfile(np.ones((1, 1, model.experts), dtype=np.int64), model.moe_layer_ids, "even")
    transport = "slot" if row.groups > WIDE else "allgather"
    workload = Workload(tokens_per_rank, transport=transport)
    return Problem(_machine(row), model, load, workload, model.experts // row.gpus)


def _machine(row: Row) -> Topology:
    preset, in_node, _ = MACHINES[row.system]
    nodes = -(-row.gpus // in_node)
    return read_topology(f"{preset}:{nodes}x{row.gpus // nodes}")
