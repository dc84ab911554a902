"""Scale: whole `moeplan solve` processes, cold, with the peak memory of all their processes together.

1,152 slots do not divide over 1,024 GPUs, so that shape is run at one slot on each of 1,152 GPUs, and 1,024
GPUs get two slots each.
Shapes: L layers, E experts, T tokens, K = top_k.
"""

import numpy as np
import numpy.typing as npt

from planner.bench.cold import solve_cold
from planner.bench.frame import Instance, Peers, Table, each
from planner.solvers import Progress

TITLE = "Whole cold `moeplan solve` processes"
THOUSAND = Instance("61x256 -> 2048 / 1024 GPUs", 61, 256, 2, "hgx-h100:128")
ONE_SLOT = Instance("61x256 -> 1152 / 1152 GPUs", 61, 256, 1, "hgx-h100:144")
TRACED = Instance("92x512 -> 640 / 128 GPUs, traced", 92, 512, 5, "hgx-h100:16")
RUNS: tuple[tuple[Instance, tuple[str, ...]], ...] = (
    (Instance("58x256 -> 288 / 32 GPUs", 58, 256, 9, "hgx-h100:4"), ("--method", "greedy")),
    (ONE_SLOT, ("--method", "auto")),
    (THOUSAND, ("--method", "auto")),
    (THOUSAND, ("--method", "auto", "--workers", "1", "--engine", "sglang")),
    (THOUSAND, ("--method", "auto", "--engine", "sglang")),
    (TRACED, ("--method", "auto")),
    (TRACED, ("--method", "auto", "--workers", "1", "--engine", "sglang", "--phase", "prefill")),
    (TRACED, ("--method", "auto", "--engine", "sglang", "--phase", "prefill")),
)
NOTES = (
    (
        "auto uses all CPUs where the size says that processes pay; the plan is the same for any number of "
        "workers"
    ),
    (
        "cpu_seconds: processor time of all processes, which other work on the machine stretches less than "
        "the wall clock"
    ),
)
TOPICS, TRACED_TOKENS = 16, 8192


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """One run each: minutes are minutes."""
    del peers, repeats
    rows: list[dict[str, object]] = []
    for instance, flags in each(RUNS, progress, lambda case: case[0].name):
        trace_LTK = topical_trace(instance) if instance is TRACED else None
        found = solve_cold(instance, *flags, traced_LTK=trace_LTK)
        rows.append(
            {
                "instance": instance.name,
                "method": " ".join(flags[1:]).replace("--", ""),
                "seconds": found.seconds,
                "cpu_seconds": found.cpu_seconds,
                "peak_bytes": found.peak_bytes,
            }
        )
    return Table(TITLE, tuple(rows), NOTES)


def topical_trace(instance: Instance, seed: int = 0) -> npt.NDArray[np.int32]:
    """ids_LTK of tokens that each follow one of a few topics, so that experts of a topic are chosen together.

    Popularity is lognormal.
    """
    draw, experts = np.random.default_rng(seed), instance.experts
    ids_LTK = np.empty((instance.layers, TRACED_TOKENS, instance.top_k), dtype=np.int32)
    for layer in range(instance.layers):
        popularity_E = draw.normal(0.0, instance.sigma, experts)
        taste_UE = popularity_E + draw.normal(0.0, 1.0, (TOPICS, experts))
        topic_T = draw.integers(0, TOPICS, TRACED_TOKENS)
        wish_TE = taste_UE[topic_T] + draw.gumbel(size=(TRACED_TOKENS, experts))
        ids_LTK[layer] = np.argpartition(-wish_TE, instance.top_k, axis=1)[:, : instance.top_k]
    return ids_LTK
