"""Where this rank sits, and where all of them do. No torch.

Each writes its seat into a folder that they share, and the first reads them.
"""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from planner.base import BadInput, read_json, write_json
from planner.topology import Seat, seat_from_dict
from probes.nvml.ask import ask_nvml
from probes.ranks.launch import Launch

POLL_SECONDS = 0.1


def seat_here(launch: Launch, environment: Mapping[str, str] = os.environ) -> Seat:
    """The host of this rank (as Slurm calls it where Slurm started it), its number there and its GPU."""
    host = environment.get("SLURMD_NODENAME") or socket.gethostname()
    uuid = _own_uuid(launch.local_rank, environment.get("CUDA_VISIBLE_DEVICES"), _uuids())
    return Seat(launch.rank, host, launch.local_rank, uuid=uuid)


def gather_seats(own: Seat, launch: Launch, folder: Path, timeout_seconds: float) -> tuple[Seat, ...] | None:
    """Every rank's seat, for rank 0; None for the others. BadInput names the ranks that did not come in time.

    The files carry the launch's own id, so that an earlier start's are not read.
    """
    run = "".join(letter if letter.isalnum() else "-" for letter in launch.run or "run")
    paths = [folder / f"seat-{run}-{rank}.json" for rank in range(launch.world)]
    if not folder.is_dir():
        raise BadInput(f"{folder}: not a folder on host {own.host}; --gather names one that all ranks share")
    write_json(paths[own.rank], {key: value for key, value in asdict(own).items() if key != "node"})
    if own.rank:
        return None
    deadline = time.monotonic() + timeout_seconds
    while absent := [rank for rank, path in enumerate(paths) if not path.is_file()]:
        if time.monotonic() > deadline:
            _remove(paths)
            shown = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
            late = f"no seat of rank {shown} after {timeout_seconds:g} s"
            raise BadInput(f"{folder}: {late}; did they start, and do they share this folder?")
        time.sleep(POLL_SECONDS)
    seats = tuple(seat_from_dict(read_json(path), str(path)) for path in paths)
    _remove(paths)
    return seats


def _remove(paths: Sequence[Path]) -> None:
    """A launcher may give the next start the same id, which must not find these."""
    for path in paths:
        path.unlink(missing_ok=True)


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
