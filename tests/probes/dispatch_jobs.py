"""The smallest dispatch job there is, for the tests that need one."""

import numpy as np

from probes.dispatch.job import DispatchJob, Side
from probes.dispatch.seen import Seen


def make_job(transport: str = "slot") -> DispatchJob:
    """Two experts on two GPUs of two nodes; every token asks for both."""
    return DispatchJob(
        sides={"plan": Side(np.array([[0, 1]]), np.ones((1, 1, 2)))},
        layer_ids=(4,),
        experts=2,
        top_k=2,
        dispatch_width=64,
        shares_LE=np.array([[0.5, 0.5]]),
        unit_G=np.array([0, 1]),
        transport=transport,
        tokens_per_rank=10,
    )


def seen_of(rank: int, side: str, seconds: dict[str, list[float]], wrong_sums: list[str]) -> Seen:
    """What a rank sees of it: ten assignments of each rank, 144 bytes there and 128 back."""
    return Seen(
        rank=rank,
        side=side,
        row=0,
        sent_bytes_G=[1440, 1440],
        received_bytes_G=[1440, 1440],
        sent_back_bytes_G=[1280, 1280],
        received_back_bytes_G=[1280, 1280],
        received=[[0, rank, 10], [1, rank, 10]],
        distinct_tokens=10,
        distinct_results=10,
        matrices=[[rank, 64 * 64 // 3, 5 + rank]],
        misplaced="",
        wrong_sums=wrong_sums,
        seconds=seconds,
    )
