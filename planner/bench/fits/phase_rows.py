"""Rows of dispatch and combine: who sent how much, over which link, and how long it took.

The busiest link is known for these rows, all with even traffic: NVLink on one node, the NIC on several.

Shapes: N rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.bench.fits.tables import Columns, numbers, select

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

GPUS_PER_NODE = {"GB200": 4, "GB300": 4}  # else 8
NVLINK = {"A100": 300e9, "H100": 450e9, "H200": 450e9}  # bytes/s of a GPU, one direction; else 900e9
NIC = 50e9  # of the H100 rows on several nodes
SMS = 20  # that DeepEP's normal kernels may take: its default, and vLLM's
FP8, BF16 = 1 + 4 / 128, 2.0  # bytes an element: dispatch, combine


@dataclass(frozen=True)
class PhaseRows:
    """Rows of one chip and direction: who sent how much, and how long it took."""

    ranks_N: Floats
    slots_N: Floats  # experts a rank
    nvlink_N: Floats  # seconds of the bytes at line rate, where NVLink is waited for
    nic_N: Floats  # the same for the NIC
    seconds_N: Floats
    group_N: Floats  # what is left out together: a hidden size or number of GPUs; -n for rows of n nodes
    group: str
    least: int  # ranks of the rows with the fewest

    def kept(self, kept_N: Bools) -> "PhaseRows":
        """Those rows alone; the least ranks stay those of all."""
        names = ("ranks_N", "slots_N", "nvlink_N", "nic_N", "seconds_N", "group_N")
        return replace(self, **{name: getattr(self, name)[kept_N] for name in names})


def slot_rows(rows: Columns, chip: str, phase: str) -> PhaseRows:
    """DeepEP's low-latency kernels: a message an assignment, fp8 there and bf16 back."""
    rows = select(rows, np.nan_to_num(rows[f"{phase}_avg_t_us"]) > 0)
    nodes, width, tokens, top_k, experts, took = numbers(
        rows, "node_num", "hidden_size", "num_token", "num_topk", "num_experts", f"{phase}_avg_t_us"
    )
    ranks = nodes * GPUS_PER_NODE.get(chip, 8)
    message = width * FP8 + 16 if phase == "dispatch" else width * BF16
    several = nodes > 1
    away = np.where(several, 1 - 1 / nodes, 1 - 1 / ranks)
    sent = tokens * top_k * message * away
    return PhaseRows(
        ranks,
        experts / ranks,
        np.where(several, 0, sent) / NVLINK.get(chip, 900e9),
        np.where(several, sent, 0) / NIC,
        took * 1e-6,
        np.where(several, -nodes, width),
        "hidden size",
        int(ranks.min()),
    )


def rank_rows(rows: Columns, chip: str, phase: str) -> PhaseRows:
    """DeepEP's normal kernels on one node: a message for each GPU that has an expert of the token."""
    took = np.nan_to_num(rows[f"{phase}_transmit_us"].astype(float))
    rows = select(rows, (took > 0) & (rows["node_num"] == 1) & (rows[f"{phase}_sms"] == SMS))
    width, tokens, top_k, experts, transmit, notify = numbers(
        rows,
        "hidden_size",
        "num_token",
        "num_topk",
        "num_experts",
        f"{phase}_transmit_us",
        f"{phase}_notify_us",
    )
    ranks = np.full(len(width), float(GPUS_PER_NODE.get(chip, 8)))
    header = 4 + 12 * top_k if phase == "dispatch" else 4 + 4 * top_k
    message = width * (FP8 if phase == "dispatch" else BF16) + header
    sent = tokens * (ranks - 1) * hit_chance(experts, top_k, ranks) * message
    seconds = (transmit + np.nan_to_num(notify)) * 1e-6
    none = np.zeros(len(width))
    nvlink, least = sent / NVLINK.get(chip, 900e9), int(ranks.min())
    return PhaseRows(ranks, none, nvlink, none, seconds, width, "hidden size", least)


def hit_chance(experts: Floats, top_k: Floats, ranks: Floats) -> Floats:
    """Chance that a GPU has one of a token's experts, all k-subsets alike."""
    own = experts / ranks
    steps = np.arange(int(top_k.max()))[:, None]
    missed = np.clip((experts - own - steps) / np.maximum(experts - steps, 1), 0, 1)
    return np.asarray(1 - np.where(steps < top_k, missed, 1.0).prod(axis=0))


def allgather_rows(rows: Columns, chip: str, phase: str) -> PhaseRows:
    """NCCL's all_gather for dispatch, reduce_scatter for combine, 16-bit elements."""
    op = "all_gather" if phase == "dispatch" else "reduce_scatter"
    rows = select(rows, (rows["op_name"] == op) & (rows["nccl_dtype"] == "half"))
    ranks, elements, took = numbers(rows, "num_gpus", "message_size", "latency")
    sent = elements * BF16 * (1 - 1 / ranks)
    none = np.zeros(len(ranks))
    nvlink, least = sent / NVLINK.get(chip, 900e9), int(ranks.min())
    return PhaseRows(ranks, none, nvlink, none, took * 1e-3, ranks, "number of GPUs", least)


PHASES: dict[str, Callable[[Columns, str, str], PhaseRows]] = {
    "slot": slot_rows,
    "rank": rank_rows,
    "allgather": allgather_rows,
}
