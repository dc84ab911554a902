"""Constants of expert compute, fitted to measured grouped GEMMs of one chip and weight dtype.

seconds = fixed + max(operations / (peak · share), touched weights / (bandwidth · share))
        + per_value · values

`values` are the elements of all rows that enter: they are quantised, sorted and summed. Rows under an even
load alone, for which it is known how many assignments a rank has.

Shapes: N rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.base import GpuModel
from planner.bench.fits.phase_rows import Bools, Floats
from planner.bench.fits.tables import Columns, numbers, select
from planner.fitting import held_out_N, mean_error, relative_fit
from planner.model import BYTES_PER_WEIGHT

EVEN = ("balanced", "uniform")
# Weight dtypes as the tables call them; and the peak rate of a GPU that their products are counted against.
NAMES = {"bf16": "bfloat16", "fp8": "fp8_block", "nvfp4": "nvfp4", "mxfp4": "w4a16_mxfp4", "int4": "int4_wo"}
RATES = {"fp8": "fp8", "nvfp4": "fp8"}  # else bf16: the weights are widened
LEAST_ROWS = 40
TURNS = 15  # between which term is the larger and what the terms are; it stands still long before


@dataclass(frozen=True)
class ComputeRows:
    """Rows of one chip and dtype."""

    flops_N: Floats  # seconds of the operations at the GPU's peak
    memory_N: Floats  # seconds of the touched weights at its bandwidth
    values_N: Floats  # elements of the rows that enter
    seconds_N: Floats
    group_N: Floats
    group: str

    def kept(self, kept_N: Bools) -> "ComputeRows":
        names = ("flops_N", "memory_N", "values_N", "seconds_N", "group_N")
        return replace(self, **{name: getattr(self, name)[kept_N] for name in names})


@dataclass(frozen=True)
class ComputeFit:
    """Seconds and shares; `error` in sample, `held_out` with each group left out in turn."""

    fixed: float
    flops: float
    memory: float
    per_value: float
    rows: int
    error: float
    held_out: float
    group: str

    def seconds_N(self, rows: ComputeRows) -> Floats:
        longer_N = np.maximum(rows.flops_N / self.flops, rows.memory_N / self.memory)
        return self.fixed + longer_N + self.per_value * rows.values_N


def compute_rows(rows: Columns, dtype: str, gpu: GpuModel, *, masked: bool) -> ComputeRows | None:
    """The rows of a weight dtype under an even load; None where there are too few.

    `masked`: each assignment enters as a row of its own; else every token of the group does.
    """
    even_N = np.isin(rows["distribution"], EVEN) & (rows["moe_dtype"] == NAMES[dtype])
    sharded_N = rows["moe_tp_size"].astype(float) > 1 if "moe_tp_size" in rows else False
    rows = select(rows, even_N & ~np.asarray(sharded_N) & (rows["moe_ep_size"].astype(float) > 1))
    if len(rows["latency"]) < LEAST_ROWS:
        return None
    tokens, top_k, width, inner, experts, ranks, took = numbers(
        rows, "num_tokens", "topk", "hidden_size", "inter_size", "num_experts", "moe_ep_size", "latency"
    )
    assignments = tokens * top_k / ranks
    touched = np.minimum(assignments, experts / ranks)
    weights = 3 * width * inner
    several = len(np.unique(width)) > 2
    return ComputeRows(
        assignments * 2 * weights / gpu.peak_flops_per_s(RATES.get(dtype, "bf16")),
        touched * weights * BYTES_PER_WEIGHT[dtype] / gpu.memory_bytes_per_s,
        (assignments if masked else tokens) * width,
        took * 1e-3,
        *((width, "hidden size") if several else (ranks, "EP size")),
    )


def fit_compute(rows: ComputeRows) -> ComputeFit:
    def fit(seen_N: Bools) -> ComputeFit:
        return _fit(rows.kept(seen_N))

    found = fit(np.ones(len(rows.seconds_N), dtype=bool))
    held_out = held_out_N(rows.group_N, fit, lambda one: one.seconds_N(rows))
    return replace(found, held_out=mean_error(held_out, rows.seconds_N))


def _fit(rows: ComputeRows) -> ComputeFit:
    """By turns: which term is the larger, then the terms. The best turn counts."""
    flops, memory, best = 0.4, 0.7, None
    for _ in range(TURNS):
        computes_N = rows.flops_N / flops >= rows.memory_N / memory
        columns = (
            np.ones(len(computes_N)),
            rows.flops_N * computes_N,
            rows.memory_N * ~computes_N,
            rows.values_N,
        )
        fixed, per_flop, per_byte, per_value = relative_fit(
            np.stack(columns, axis=1), rows.seconds_N
        ).tolist()
        new_flops, new_memory = (1 / per_flop if per_flop else flops), (1 / per_byte if per_byte else memory)
        found = ComputeFit(fixed, new_flops, new_memory, per_value, len(computes_N), 0.0, 0.0, rows.group)
        found = replace(found, error=mean_error(found.seconds_N(rows), rows.seconds_N))
        if best is None or found.error < best.error:
            best = found
        flops, memory = (flops + new_flops) / 2, (memory + new_memory) / 2
    assert best is not None
    return best
