"""Seconds of one exchange among ranks of this machine, which share its clock. Imports torch.

Shapes: G ranks, B bytes.
"""

import time

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from probes.ranks.wire import Wire


def exchange_seconds(wire: Wire, bytes_GG: npt.NDArray[np.float64]) -> float:
    """From the first rank's start to the last one's end, the same at every rank.

    A rank's own seconds would be too few: it may have started late behind what others had sent.
    """
    whole_GG = np.round(bytes_GG).astype(np.int64)
    sent_G, received_G = whole_GG[wire.rank].tolist(), whole_GG[:, wire.rank].tolist()
    rows_B1 = torch.zeros((sum(sent_G), 1), dtype=torch.uint8)
    wire.barrier()
    start = time.monotonic()
    wire.exchange(rows_B1, sent_G, received_G)
    times = torch.tensor([start, time.monotonic()], dtype=torch.float64)
    times_G2 = [torch.zeros_like(times) for _ in range(wire.gpus)]
    dist.all_gather(times_G2, times, group=wire.control)
    took_part = (whole_GG.sum(axis=0) + whole_GG.sum(axis=1)) > 0
    starts, ends = zip(
        *(one.tolist() for one, took in zip(times_G2, took_part, strict=True) if took), strict=True
    )
    return float(max(ends) - min(starts))
