"""How a rank joins the process group. Imports torch.

The CUDA path was not run on a GPU when this was written.
"""

import os

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

from probes.ranks.party import Limit, Party, PeersLostError
from probes.ranks.status import Status
from probes.ranks.wire import Tally, Wire


def open_device(party: Party) -> torch.device:
    """What this rank computes on: the GPU of its number on this host, or the only one that it sees."""
    torch.set_num_threads(1)
    if party.device != "cuda":
        return torch.device("cpu")
    local = os.environ.get("LOCAL_RANK") or os.environ.get("SLURM_LOCALID") or "0"
    device = torch.device("cuda", int(local) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def open_wire(
    party: Party, device: torch.device, limit: Limit, status: Status, store: Store, rank: int
) -> Wire:
    """Join the process group. PeersLostError where that fails.

    NCCL on GPUs with a gloo group beside it for counts and barriers, gloo alone on the CPU.
    """
    status.wait(waiting=True)
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=limit.delta, world_size=party.ranks, rank=rank, store=store)
        control = dist.new_group(backend="gloo", timeout=limit.delta)
    except RuntimeError as error:
        raise PeersLostError(str(error)) from error
    unit_G = torch.tensor(party.nodes, dtype=torch.int64, device=device)
    return Wire(rank, device, control, status, unit_G, Tally(), limit)
