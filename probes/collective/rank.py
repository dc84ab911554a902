"""One rank of a measurement: an all-to-all of each size in each scope. Imports torch.

Every send and receive is posted at once, as NCCL does. The CUDA and NCCL paths were not run on a GPU when
this was written.
"""

import json
import socket
from typing import Any

import torch

from probes.collective.job import MeasureJob, scopes
from probes.ranks.wire import Wire

# Exchanges in a row that are timed together: on GPUs one is over sooner than ranks can be started together.
ITERATIONS = {"cuda": 20, "cpu": 1}


def work(job: MeasureJob, wire: Wire) -> str:
    """JSON: host and GPU of this rank, and its seconds for an exchange, by scope, size and repeat."""
    wire.status.enter("exchange of host names")
    host_G = wire.gather(socket.gethostname())
    gpu = torch.cuda.get_device_name(wire.device) if wire.device.type == "cuda" else None
    rows = {}
    for scope, groups in scopes(host_G, job.domain_of_rank).items():
        mates = next(group for group in groups if wire.rank in group)
        rows[scope] = _rows(job, wire, scope, mates)
    return json.dumps({"host": host_G[wire.rank], "gpu": gpu, "rows": rows})


def _rows(job: MeasureJob, wire: Wire, scope: str, mates: list[int]) -> list[dict[str, Any]]:
    rows = []
    for asked in job.sweep.sizes:
        size = max(asked // len(mates), 1) * len(mates)  # each rank gets the same number of bytes
        wire.status.enter(f"all-to-all of {size} bytes, scope '{scope}'")
        out_GB = torch.zeros((len(mates), size // len(mates)), dtype=torch.uint8, device=wire.device)
        counts_G = [int(rank in mates) for rank in range(wire.gpus)]
        wire.exchange(out_GB, counts_G, counts_G)  # opens connections
        seconds = [_seconds(wire, out_GB, counts_G) for _ in range(job.sweep.repeats)]
        rows.append({"size": size, "seconds": seconds})
    return rows


def _seconds(wire: Wire, out_GB: torch.Tensor, counts_G: list[int]) -> float:
    """Of one exchange, all ranks having begun together."""
    iterations = ITERATIONS[wire.device.type]
    wire.barrier()
    start = wire.settle()
    for _ in range(iterations):
        wire.exchange(out_GB, counts_G, counts_G)
    return (wire.settle() - start) / iterations
