"""The smallest dispatch job there is, for the tests that need one."""

import numpy as np

from probes.dispatch.job import DispatchJob, Side


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
