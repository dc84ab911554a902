"""The public routing traces that studies are fitted to and judged on.

They are read from beside the checkout and are no part of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from planner.load import LoadProfile, Trace, read_load, split_windows
from planner.model import find_model
from planner.problem import Problem, Workload, check_slots
from planner.topology import read_topology

FOLDER = Path(__file__).resolve().parents[2] / "../shared/data/loads"
DOMAINS = ("intent", "law")
ABSENT = (
    "not measured: the DeepSeek-V2-Lite routing traces (deepseek-ai/ESFT) are expected in "
    "../shared/data/loads, beside the checkout"
)
# The transports' own use: node is DeepEP's normal mode for prefill, slot its low-latency mode for decode
TOKENS_PER_RANK = {"node": 4096, "slot": 128}


def trace_file(domain: str) -> Path:
    return FOLDER / f"deepseek-v2-lite_{domain}_trace.npz"


def traces_found() -> bool:
    return all(trace_file(domain).is_file() for domain in DOMAINS)


def traced_problem(
    domain: str, machine: str, redundant: int, rule: str, transport: str, every: int = 1
) -> tuple[Problem, LoadProfile]:
    """(problem on the first two thirds of a domain's sequences, the rest), of each `every`-th layer."""
    model = find_model("deepseek-v2-lite")
    load = read_load((trace_file(domain),), model)
    some = of_rows(load, range(0, len(load.layer_ids), every))
    fitted, held_out = split_windows(some)
    assert held_out is not None  # a trace of several sequences
    model = replace(model, moe_layer_ids=fitted.layer_ids)
    topology = read_topology(machine)
    phase = "prefill" if transport == "node" else "decode"
    workload = Workload(TOKENS_PER_RANK[transport], phase, "bf16", "bf16", transport)
    slots_per_gpu = check_slots(model, topology.gpu_count, redundant)
    return Problem(topology, model, fitted, workload, slots_per_gpu, rule), held_out


def of_rows(load: LoadProfile, rows: Sequence[int]) -> LoadProfile:
    """The load of some of its layers, trace and all."""
    chosen, trace = list(rows), load.trace
    if trace is not None:
        trace = Trace(trace.experts_LTK[chosen].copy(), trace.sequence_lengths)
    layer_ids = tuple(load.layer_ids[row] for row in chosen)
    unmeasured = tuple(layer for layer in load.unmeasured_layer_ids if layer in layer_ids)
    return replace(
        load,
        tokens_WLE=load.tokens_WLE[:, chosen].copy(),
        layer_ids=layer_ids,
        trace=trace,
        unmeasured_layer_ids=unmeasured,
    )
