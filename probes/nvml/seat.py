"""Where this rank sits: its host, its number there, and the GPU that it uses. No torch."""

import os
import socket
from collections.abc import Mapping

from planner.base import BadInput
from planner.topology import Seat
from probes.nvml.ask import ask_nvml
from probes.ranks.launch import Launch


def seat_here(launch: Launch, environment: Mapping[str, str] = os.environ) -> Seat:
    """The host of this rank (as Slurm calls it where Slurm started it), its number there and its GPU."""
    host = environment.get("SLURMD_NODENAME") or socket.gethostname()
    uuid = _own_uuid(launch.local_rank, environment.get("CUDA_VISIBLE_DEVICES"), _uuids())
    return Seat(launch.rank, host, launch.local_rank, uuid=uuid)


def _uuids() -> tuple[str | None, ...]:
    """UUIDs in NVML's order; none where NVML cannot be asked: hosts are compared all the same."""
    try:
        return tuple(gpu.get("uuid") for gpu in ask_nvml().gpus)
    except BadInput:
        return ()


def _own_uuid(local: int, visible: str | None, uuids: tuple[str | None, ...]) -> str | None:
    """The GPU that this rank uses: the one of its number among the visible ones.

    The only one, where each rank sees its own alone.

    >>> _own_uuid(1, "3,2", ("GPU-a", "GPU-b", "GPU-c", "GPU-d"))
    'GPU-c'
    """
    names = [str(index) for index in range(len(uuids))]
    if visible:
        names = [name.strip() for name in visible.split(",")]
    if not names:
        return None
    name = names[0] if len(names) == 1 else names[local] if local < len(names) else ""
    if name.isdecimal():
        return uuids[int(name)] if int(name) < len(uuids) else None
    whole = [uuid for uuid in uuids if uuid and name and uuid.startswith(name)]
    return whole[0] if len(whole) == 1 else None
