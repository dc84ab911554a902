"""How close the bounds in seconds are: to the best placement of tiny questions, and to plans of a large one.

For each replica rule and transport.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.bench.frame import Instance, Peers, Table, each, synthetic_model, synthetic_problem
from planner.bounds import time_bound
from planner.cost import Floats, cost
from planner.load import LoadProfile, Trace
from planner.placement import Placement
from planner.problem import TRANSPORTS, Problem, Workload
from planner.solvers import Progress, every_placement, find_method
from planner.topology import read_topology

TITLE = "Bounds in seconds, against the best of all placements and against plans"
RULES = ("even", "hashed", "nearest", "fixed-by-source", "round-robin")
QUESTIONS = 12  # tiny ones for each rule and transport
TINY_SHAPES = ((3, 1), (4, 1), (3, 2))  # experts, slots a GPU; 2 nodes of 2 GPUs
TOKENS = {"decode": 128, "prefill": 4096}
LARGE = Instance("12x256 -> 288 / 32 GPUs, 4 nodes", 12, 256, 9, "hgx-h100:4")


def run(_peers: Peers, _repeats: int, progress: Progress | None) -> Table:
    """One row for each rule and transport of tiny questions, and for each of the large instance.

    `gap_share` is what is above the bound.
    """
    cases = [(rule, transport) for rule in RULES for transport in TRANSPORTS]
    rows = []
    for rule, transport in each(cases, progress, " ".join):
        gaps_X = np.array([_tiny_gap(rule, transport, seed) for seed in range(QUESTIONS)])
        tiny = "tiny, 3-4 experts / 4 GPUs"
        rows.append(_row(tiny, "best of all", (rule, transport), gaps_X, f"{QUESTIONS} questions"))
        methods = ("refine", "remote") if rule == "nearest" else ("refine",)
        rows += [_large_row(rule, transport, method) for method in methods]
    notes = (
        (
            f"tiny: {QUESTIONS} questions a row, R = 0, 1 and 5, with and without a trace; mean and largest "
            "of (least seconds of any placement / bound - 1)"
        ),
        (
            "large: lognormal load, decode for slot and allgather, else prefill; (seconds of the plan / "
            "bound - 1) over all layers, and of the worst one"
        ),
        (
            "a gap of a tiny question lies in the bound alone; one of the large instance in the bound or in "
            "the plan"
        ),
    )
    return Table(TITLE, tuple(sorted(rows, key=lambda row: str(row["instance"]), reverse=True)), notes)


def _row(
    instance: str, method: str, case: tuple[str, str], gaps_X: Floats, bounded_by: str
) -> dict[str, object]:
    return {
        "instance": instance,
        "method": method,
        "rule": case[0],
        "transport": case[1],
        "gap_share": float(gaps_X.mean()),
        "worst_gap_share": float(gaps_X.max()),
        "bound_by": bounded_by,
    }


def _large_row(rule: str, transport: str, method: str) -> dict[str, object]:
    phase = "decode" if transport in ("slot", "allgather") else "prefill"
    workload = Workload(TOKENS[phase], phase, "fp8", "bf16", transport)
    problem = replace(synthetic_problem(LARGE, replica_rule=rule), workload=workload)
    seconds_L, bound = cost(problem, find_method(method)(problem)).layer_seconds_L, time_bound(problem)
    gaps_L = seconds_L / bound.layer_seconds_L - 1
    row = _row(LARGE.name, method, (rule, transport), gaps_L, bound.reason("dispatch"))
    return {**row, "gap_share": float(seconds_L.sum() / bound.total_seconds - 1)}


def _tiny_gap(rule: str, transport: str, seed: int) -> float:
    """The least seconds of any placement over the bound, less 1."""
    drawn = np.random.default_rng(seed)
    experts, slots_per_gpu = TINY_SHAPES[seed % len(TINY_SHAPES)]
    top_k, tokens, traced = 1 + seed % 2, int(drawn.choice([4, 128, 4096])), bool(seed // 2 % 2)
    keys_TE = drawn.lognormal(0.0, 1.0, experts) + drawn.gumbel(size=(40, experts))
    experts_TK = np.argsort(-keys_TE, axis=1)[:, :top_k]
    workload = Workload(tokens, transport=transport)
    one = _as_layers(experts_TK, 1, (rule, slots_per_gpu, workload), traced=traced)
    rows_NP = every_placement(one, 100_000)
    assert rows_NP is not None
    every = _as_layers(experts_TK, len(rows_NP), (rule, slots_per_gpu, workload), traced=traced)
    seconds_N = cost(every, Placement(rows_NP, every.model.placed_layer_ids, every.gpus)).layer_seconds_L
    return float(seconds_N.min() / time_bound(one).layer_seconds_L[0] - 1)


def _as_layers(
    experts_TK: npt.NDArray[np.int64], layers: int, asked: tuple[str, int, Workload], *, traced: bool
) -> Problem:
    """The question once a layer, so that every placement is priced as a layer of one."""
    rule, slots_per_gpu, workload = asked
    experts, top_k = int(experts_TK.max()) + 1, experts_TK.shape[1]
    sizes = {"hidden": 1024, "expert_intermediate": 512}
    model = synthetic_model("tiny", layers, experts, top_k, **sizes, dtype="bf16")
    counts_WLE = np.tile(np.bincount(experts_TK.ravel(), minlength=experts), (1, layers, 1))
    experts_LTK = np.repeat(experts_TK[None].astype(np.int32), layers, axis=0)
    trace = Trace(experts_LTK, (len(experts_TK),)) if traced else None
    load = LoadProfile(counts_WLE, model.moe_layer_ids, "benchmark", trace=trace)
    return Problem(read_topology("hgx-h100:2x2"), model, load, workload, slots_per_gpu, rule)
