"""Random plans run by virtual ranks: `python -m tests.probes.dispatch.random_plans COUNT [SEED]`.

Each has its own machine, experts, replicas, top-k, load, transport, dtypes and shares of replicas. A plan is
right when every check of `moeplan validate` holds, the sum of each token first. A line for each that is not.
"""

import sys

import numpy as np

from planner.problem import BYTES_PER_ELEMENT, TRANSPORTS
from probes.dispatch.job import DispatchJob, Side
from probes.dispatch.report import DispatchReport, judge
from probes.dispatch.run import run

DTYPES = tuple(BYTES_PER_ELEMENT)


def drawn_job(dice: np.random.Generator) -> DispatchJob:
    """Experts spread over slots in any order, no expert twice on a GPU."""
    nodes, gpus_a_node = int(dice.integers(1, 5)), int(dice.integers(1, 5))
    gpus = nodes * gpus_a_node
    slots_a_gpu = int(dice.integers(1, 9))
    experts = int(dice.integers(slots_a_gpu, gpus * slots_a_gpu + 1))
    expert_P = drawn_row(dice, gpus, slots_a_gpu, experts)
    shares_E = dice.lognormal(sigma=1.5, size=experts)
    return DispatchJob(
        sides={"plan": Side(expert_P[None], drawn_shares(dice, expert_P)[None, None])},
        layer_ids=(int(dice.integers(0, 60)),),
        experts=experts,
        top_k=int(dice.integers(1, min(experts, 8) + 1)),
        dispatch_width=256,
        shares_LE=(shares_E / shares_E.sum())[None],
        unit_G=np.arange(gpus) // gpus_a_node,
        transport=str(dice.choice(list(TRANSPORTS))),
        dispatch_dtype=str(dice.choice(DTYPES)),
        combine_dtype=str(dice.choice(DTYPES)),
        tokens_per_rank=int(dice.integers(1, 65)),
        repeats=1,
        timeout_seconds=300.0,
        seed=int(dice.integers(1 << 31)),
        virtual=True,
    )


def drawn_row(dice: np.random.Generator, gpus: int, slots_a_gpu: int, experts: int) -> np.ndarray:
    """expert_P: every expert once, then replicas where there is room for another."""
    slots_GZ = np.full((gpus, slots_a_gpu), -1)
    order_P = dice.permutation(gpus * slots_a_gpu)
    slots_GZ.reshape(-1)[order_P[:experts]] = dice.permutation(experts)
    for slot in order_P[experts:].tolist():
        free = np.setdiff1d(np.arange(experts), slots_GZ[slot // slots_a_gpu])
        slots_GZ.reshape(-1)[slot] = dice.choice(free)
    return slots_GZ.reshape(-1)


def drawn_shares(dice: np.random.Generator, expert_P: np.ndarray) -> np.ndarray:
    """share_P: of an expert's assignments, to each of its slots; in every fourth plan all are alike."""
    weight_P = np.ones(len(expert_P)) if dice.random() < 0.25 else dice.uniform(0.2, 1.0, len(expert_P))
    share_P: np.ndarray = weight_P / np.bincount(expert_P, weight_P)[expert_P]
    return share_P


def main(count: int, seed: int) -> int:
    wrong = tokens = 0
    for number in range(count):
        job = drawn_job(np.random.default_rng([seed, number]))
        report: DispatchReport = judge(run(job))
        tokens += job.gpus * job.tokens_per_rank
        failed = [f"{check.name}: {check.detail}" for check in report.checks if not check.ok]
        if failed:
            wrong += 1
            sys.stdout.write(f"plan {number} ({job.transport}, {job.gpus} GPUs): {failed[0]}\n")
    sys.stdout.write(f"{count} random plans, {tokens:,} tokens: {wrong} plans with anything wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
